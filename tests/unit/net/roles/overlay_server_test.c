/* The server of the overlay, which jobs of strangers share. */
#include "pool_fixture.h"
#include "support.h"

#include "base/error.h"
#include "net/roles/overlay_server.h"
#include "net/station/station.h"

enum {
    PKTS = 4096,
    MTU = 1408,
    HDR = 80,
    JOBS = 8,
    MANY = 64, /* ranks of each of the other jobs */
    FEW = 2,   /* of ours */
    FIRST_ADDRESS = 100,
};

struct fixture {
    struct gw_pkt_pool pool;
    struct gw_buf_pool bufs;
    struct gw_loop *loop;
    struct gw_overlay_server *server;
};

static void fixture_open_for(struct fixture *f, const struct gw_tenants *tenants)
{
    gw_test_pool_open(&f->pool, &f->bufs, PKTS, MTU);
    f->loop = gw_loop_open(&(struct gw_loop_cfg){.pool = &f->pool, .peers_max = 1});
    assert_non_null(f->loop);
    const struct gw_overlay_server_cfg cfg = {
        .loop = f->loop,
        .pool = &f->pool,
        .address = 1,
        .incarnation = 5,
        .hdr = HDR,
        .mtu = MTU,
        .jobs_max = JOBS,
        .tenants = *tenants,
        .ranks_max = JOBS * MANY,
        .stall = GW_S,
        .seed = 6,
    };
    assert_int_equal(gw_overlay_server_open(&cfg, &f->server), 0);
}

static void fixture_open(struct fixture *f)
{
    fixture_open_for(f, &(struct gw_tenants){.count = 0});
}

static void fixture_close(struct fixture *f)
{
    gw_loop_close(f->loop);
    gw_overlay_server_close(f->server);
    gw_test_pool_abandon(&f->pool);
}

static void open_job(struct fixture *f, uint32_t job, uint16_t world)
{
    const struct gw_overlay_job served = {.job = job,
                                          .world = world,
                                          .values = 352,
                                          .window = 64,
                                          .aggregators = 64,
                                          .is_home = true};
    assert_int_equal(gw_overlay_server_add(f->server, &served), 0);
}

static void come(struct fixture *f, uint32_t job, uint16_t rank, uint32_t address, gw_time now)
{
    const struct gw_overlay_links links = {.hdr = HDR, .mtu = MTU};
    const struct gw_registrar_rank who = {
        .place = {.address = address},
        .rank = rank,
        .path = gw_overlay_path(&links, 0, GW_OVERLAY_RATE_BPS),
    };
    assert_int_equal(gw_overlay_server_come(f->server, job, &who, now), GW_JOB_OK);
}

/* All ranks of a job come, from `address` on. */
static void come_all(struct fixture *f, uint32_t job, uint16_t world, uint32_t address)
{
    open_job(f, job, world);
    for (uint16_t rank = 0; rank < world; rank++)
        come(f, job, rank, address + rank, 0);
}

/* Lets everything leave that the server has to say to nobody in particular; returns how many of
 * the addresses from `address` on were sent data. */
static uint32_t count_told(struct fixture *f, uint32_t address, uint32_t count)
{
    struct gw_node *node = gw_endpoint_node(gw_overlay_server_endpoint(f->server));
    struct gw_pkt *pkts[16];
    bool is_told[FEW] = {false};
    uint32_t told = 0, got;
    do {
        got = gw_node_output(node, 0, pkts, 16, 0);
        for (uint32_t i = 0; i < (got & ~GW_OUTPUT_MORE); i++) {
            uint32_t rank = pkts[i]->dst - address;
            if (rank < count && pkts[i]->q.kind == GW_PKT_DATA && !is_told[rank]) {
                is_told[rank] = true;
                told++;
            }
            gw_pkt_release(&f->pool, pkts[i]);
        }
    } while (got);
    return told;
}

/* Ranks of the other jobs come, and then take no message. */
static void overlay_server__tells_a_job_whatever_others_do(void **state)
{
    struct fixture f;
    uint32_t address = FIRST_ADDRESS;
    (void)state;
    fixture_open(&f);
    for (uint32_t job = 1; job < JOBS; job++, address += MANY)
        come_all(&f, job, MANY, address);
    come_all(&f, JOBS, FEW, address);
    assert_int_equal(count_told(&f, address, FEW), FEW);
    fixture_close(&f);
}

/* Whoever opens jobs without end leaves the others their part of the places. */
static void overlay_server_add__leaves_places_to_every_tenant(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open_for(&f, &(struct gw_tenants){.keys = {0, 1}, .count = 2});
    struct gw_overlay_job job = {.world = FEW, .values = 352, .window = 64, .aggregators = 64};
    const uint32_t part = JOBS / 2 / 2;
    for (job.job = 1; job.job <= JOBS - part; job.job++)
        assert_int_equal(gw_overlay_server_add(f.server, &job), 0);
    assert_int_equal(gw_overlay_server_add(f.server, &job), GW_ERR_NO_ROOM);
    for (uint32_t i = 0; i < part; i++) {
        job.job = gw_job_number(1, 1 + i);
        assert_int_equal(gw_overlay_server_add(f.server, &job), 0);
    }
    for (uint32_t who = 0; who < 2; who++) {
        struct gw_tenant_use use = {.jobs = 0};
        gw_overlay_server_use(f.server, who, &use);
        assert_int_equal(use.jobs, who ? part : JOBS - part);
        assert_int_equal(use.jobs_refused, !who);
    }
    fixture_close(&f);
}

static bool is_over(const struct fixture *f, uint32_t job, uint32_t address)
{
    return gw_overlay_server_is_over(f->server, job, address);
}

/* Also when the job is forgotten: who was stopped or cut off must not begin the next one. */
static void overlay_server_gone__is_remembered_of_a_job_that_ran(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f);
    come_all(&f, 1, FEW, FIRST_ADDRESS);
    assert_false(is_over(&f, 1, FIRST_ADDRESS));
    gw_overlay_server_gone(f.server, 1, FIRST_ADDRESS, 0); /* it is lost, and the job fails */
    gw_overlay_server_gone(f.server, 1, FIRST_ADDRESS + 1, 0);
    assert_true(gw_overlay_server_forget(f.server, 1));
    assert_true(is_over(&f, 1, FIRST_ADDRESS));
    assert_true(is_over(&f, 1, FIRST_ADDRESS + 1));
    assert_false(is_over(&f, 2, FIRST_ADDRESS));
    assert_false(is_over(&f, 1, FIRST_ADDRESS + 2));
    fixture_close(&f);
}

/* Until all have come a rank may go and come back. */
static void overlay_server_gone__before_the_job_runs_is_nothing(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f);
    open_job(&f, 1, FEW);
    come(&f, 1, 0, FIRST_ADDRESS, 0);
    gw_overlay_server_gone(f.server, 1, FIRST_ADDRESS, 0);
    assert_false(is_over(&f, 1, FIRST_ADDRESS));
    fixture_close(&f);
}

/*
 * All ranks were killed and started again at once, before their job ran. The first is found dead
 * and its successor has its seat while the other one's session still lasts.
 */
static void overlay_server_come__does_not_begin_with_one_that_may_be_dead(void **state)
{
    struct fixture f;
    const uint32_t ghosts = FIRST_ADDRESS, ranks = FIRST_ADDRESS + FEW;
    const gw_time late = GW_STATION_SILENCE;
    (void)state;
    fixture_open(&f);
    open_job(&f, 1, FEW);
    for (uint16_t rank = 1; rank < FEW; rank++)
        come(&f, 1, rank, ghosts + rank, 0);
    come(&f, 1, 0, ranks, late);
    for (uint16_t rank = 1; rank < FEW; rank++) {
        gw_overlay_server_hear(f.server, 1, rank, ghosts + rank, 0, late);
        gw_overlay_server_gone(f.server, 1, ghosts + rank, late);
        assert_int_equal(count_told(&f, ranks, FEW), 0);
        come(&f, 1, rank, ranks + rank, late);
    }
    assert_int_equal(count_told(&f, ranks, FEW), FEW);
    fixture_close(&f);
}

/* One that was only late is heard again. */
static void overlay_server_hear__begins_what_was_in_doubt(void **state)
{
    struct fixture f;
    const gw_time late = GW_STATION_SILENCE;
    (void)state;
    fixture_open(&f);
    open_job(&f, 1, FEW);
    for (uint16_t rank = 0; rank < FEW; rank++)
        come(&f, 1, rank, FIRST_ADDRESS + rank, rank * late);
    assert_int_equal(count_told(&f, FIRST_ADDRESS, FEW), 0);
    gw_overlay_server_hear(f.server, 1, 0, FIRST_ADDRESS, late, late);
    assert_int_equal(count_told(&f, FIRST_ADDRESS, FEW), FEW);
    fixture_close(&f);
}

/* However many ranks of another key are given up. */
static void overlay_server_dismiss__of_others_lets_none_of_ours_be_forgotten(void **state)
{
    struct fixture f;
    const uint32_t ours = gw_job_number(1, 1), others = gw_job_number(2, 1);
    (void)state;
    fixture_open(&f);
    gw_overlay_server_dismiss(f.server, ours, FIRST_ADDRESS);
    for (uint32_t i = 0; i < 100000; i++)
        gw_overlay_server_dismiss(f.server, others, i);
    assert_true(is_over(&f, ours, FIRST_ADDRESS));
    assert_true(is_over(&f, others, 99999));
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlay_server__tells_a_job_whatever_others_do),
        cmocka_unit_test(overlay_server_add__leaves_places_to_every_tenant),
        cmocka_unit_test(overlay_server_gone__is_remembered_of_a_job_that_ran),
        cmocka_unit_test(overlay_server_gone__before_the_job_runs_is_nothing),
        cmocka_unit_test(overlay_server_come__does_not_begin_with_one_that_may_be_dead),
        cmocka_unit_test(overlay_server_hear__begins_what_was_in_doubt),
        cmocka_unit_test(overlay_server_dismiss__of_others_lets_none_of_ours_be_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
