/* The server of the overlay, which jobs of strangers share. */
#include "pool_fixture.h"
#include "support.h"

#include "net/roles/overlay_server.h"

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

static void fixture_open(struct fixture *f)
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
        .ranks_max = JOBS * MANY,
        .stall = GW_S,
        .seed = 6,
    };
    assert_int_equal(gw_overlay_server_open(&cfg, &f->server), 0);
}

static void fixture_close(struct fixture *f)
{
    gw_loop_close(f->loop);
    gw_overlay_server_close(f->server);
    gw_test_pool_abandon(&f->pool);
}

/* All ranks of a job come, from `address` on. */
static void come_all(struct fixture *f, uint32_t job, uint16_t world, uint32_t address)
{
    const struct gw_overlay_links links = {.hdr = HDR, .mtu = MTU};
    const struct gw_overlay_job served = {.job = job,
                                          .world = world,
                                          .values = 352,
                                          .window = 64,
                                          .aggregators = 64,
                                          .is_home = true};
    assert_int_equal(gw_overlay_server_add(f->server, &served), 0);
    for (uint16_t rank = 0; rank < world; rank++) {
        const struct gw_overlay_rank come = {
            .place = {.address = address + rank},
            .rank = rank,
            .path = gw_overlay_path(&links, 0, GW_OVERLAY_RATE_BPS),
        };
        assert_int_equal(gw_overlay_server_come(f->server, job, &come, 0), GW_JOB_OK);
    }
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlay_server__tells_a_job_whatever_others_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
