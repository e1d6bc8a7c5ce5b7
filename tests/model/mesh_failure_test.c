/*
 * How a job fails for all of its ranks, over real flows: who dies when, who is told by whom, and
 * what is left for the next job.
 */
#include "mesh_fixture.h"

static void open_met(struct model *m, const struct setup *setup)
{
    model_open(m, setup);
    come_all(m);
    model_run(m);
    expect_state(m, GW_MESH_MET);
}

static void give_up(struct model *m, uint32_t rank, enum gw_job_reason reason, uint32_t about)
{
    gw_mesh_fail(m->ranks[rank].mesh, reason, about, gw_mem_now(m->mem));
}

/* Everybody but the dead hears the same. */
static void expect_all(const struct model *m, const struct gw_mesh_failure *failure)
{
    for (uint32_t rank = 0; rank < m->setup.world; rank++)
        if (!m->ranks[rank].is_dead)
            expect_failure(m, rank, failure);
}

/* What one finds, all hear, with its reason; only the first counts. */
static void mesh_fail__is_told_to_all(void **state)
{
    (void)state;
    for (enum gw_job_reason reason = GW_JOB_FULL; reason < GW_JOB_REASONS; reason++)
        for (uint32_t i = 0; i < 8; i++) {
            struct setup setup = {.world = 5, .has_ways = i & 1, .is_bare = i & 2};
            struct model m;
            open_met(&m, &setup);
            if (i & 4)
                model_worsen(&m);
            uint32_t about = (uint32_t)(reason + i) % 6;
            give_up(&m, 3, reason, about);
            model_run_for(&m, i & 4 ? 5 * GW_MS : 100 * GW_US);
            give_up(&m, 2, GW_JOB_LOST, 1);
            expect_all(&m, &(struct gw_mesh_failure){reason, about, 3});
            assert_int_equal(gw_registrar_phase(m.registrar), GW_REGISTRAR_ENDED);
            model_close(&m);
        }
}

/* Without a registrar it goes straight, from rank to rank. */
static void mesh_fail__is_told_without_the_registrar(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 8; i++) {
        bool is_told = i & 1;
        struct model m;
        open_met(&m, &(struct setup){
                         .world = 5, .is_bare = i & 2, .has_ways = i & 4, .keeps_ways = true});
        for (uint32_t rank = 0; rank + 1 < 5; rank++) /* a chain of ways */
            way_up(&m, rank, rank + 1);
        home_die(&m);
        for (uint32_t rank = 0; is_told && rank < 5; rank++)
            gw_mesh_registrar_down(m.ranks[rank].mesh, gw_mem_now(m.mem));
        give_up(&m, 0, GW_JOB_OVERFLOW, 4);
        model_run_for(&m, 100 * GW_US);
        expect_all(&m, &(struct gw_mesh_failure){GW_JOB_OVERFLOW, 4, 0});
        model_close(&m);
    }
}

/* Who has no table yet tells those with whom it has a way: they would see the session end. */
static void mesh_fail__is_told_before_the_table_has_come(void **state)
{
    (void)state;
    struct model m;
    model_open(&m, &(struct setup){.world = 2});
    assert_int_equal(come_at(&m, 1, &m.places[1], IS_NEW), GW_JOB_OK);
    come(&m, 0);
    model_run_for(&m, 100 * GW_US);
    assert_int_equal(gw_mesh_state(m.ranks[0].mesh), GW_MESH_MET);
    assert_int_equal(gw_mesh_state(m.ranks[1].mesh), GW_MESH_MEETING);
    way_up(&m, 0, 1);
    gw_mesh_set_path(m.ranks[1].mesh, 0, &m.path);
    give_up(&m, 1, GW_JOB_OVERFLOW, 1);
    model_run_for(&m, 100 * GW_US);
    expect_all(&m, &(struct gw_mesh_failure){GW_JOB_OVERFLOW, 1, 1});
    model_close(&m);
}

/* A registrar that comes back in time hears of it, and tells those who have no ways. */
static void mesh_fail__is_told_to_a_registrar_that_comes_back(void **state)
{
    (void)state;
    struct model m;
    open_met(&m, &(struct setup){.world = 3, .keeps_ways = true});
    home_die(&m);
    for (uint32_t rank = 0; rank < 3; rank++)
        gw_mesh_registrar_down(m.ranks[rank].mesh, gw_mem_now(m.mem));
    give_up(&m, 0, GW_JOB_STALLED, 2);
    model_run_for(&m, GW_MS);
    assert_int_equal(gw_mesh_state(m.ranks[1].mesh), GW_MESH_MET);
    home_return(&m);
    come_all(&m);
    model_run(&m);
    expect_all(&m, &(struct gw_mesh_failure){GW_JOB_STALLED, 2, 0});
    model_close(&m);
}

/* Whoever sees it first. */
static void mesh__fails_when_a_rank_is_lost(void **state)
{
    (void)state;
    enum { BY_REGISTRAR, BY_RANK, BY_FLOW, BY_TABLE, WAYS };
    for (uint32_t i = 0; i < 2 * WAYS; i++) {
        struct model m;
        model_open(&m, &(struct setup){.world = 3, .is_bare = i & 1});
        come_all(&m);
        if (i / 2 != BY_TABLE)
            model_run(&m);
        if (i / 2 == BY_RANK)
            way_up(&m, 0, 1);
        if (i / 2 == BY_FLOW)
            talk(&m, 0, 1, 1);
        die(&m, 1);
        unsigned char byte = 0;
        struct gw_message message = {.rank = 1, .tag = 2, .data = i & 1 ? NULL : &byte, .bytes = 1};
        if (i / 2 == BY_REGISTRAR)
            gw_registrar_gone(m.registrar, address_of(1), gw_mem_now(m.mem));
        else if (i / 2 == BY_RANK)
            gw_mesh_way_down(m.ranks[0].mesh, 1, true, gw_mem_now(m.mem));
        else if (i / 2 == BY_FLOW)
            assert_int_equal(gw_messages_start(m.ranks[0].messages, &message, gw_mem_now(m.mem)),
                             0);
        model_run_for(&m, i / 2 < BY_FLOW ? GW_MS : 3 * STALL);
        uint32_t finder = i / 2 == BY_REGISTRAR || i / 2 == BY_TABLE ? 3 : 0;
        expect_all(&m, &(struct gw_mesh_failure){GW_JOB_LOST, 1, finder});
        gw_registrar_gone(m.registrar, address_of(1), gw_mem_now(m.mem));
        model_close(&m);
    }
}

/* Not all come in time. */
static void mesh__fails_when_it_does_not_meet(void **state)
{
    (void)state;
    struct model m;
    model_open(&m, &(struct setup){.world = 2});
    come(&m, 0);
    model_run_for(&m, STALL - GW_MS);
    expect_state(&m, GW_MESH_MEETING);
    model_run_for(&m, 2 * GW_MS);
    expect_failure(&m, 0, &(struct gw_mesh_failure){GW_JOB_SILENT, 2, 0});
    expect_failure(&m, 1, &(struct gw_mesh_failure){GW_JOB_SILENT, 2, 1});
    assert_int_equal(gw_registrar_phase(m.registrar), GW_REGISTRAR_ENDED);
    model_close(&m);
}

/* Until all have come, a process may take the place of another. */
static void registrar__takes_another_process_while_it_collects(void **state)
{
    (void)state;
    struct model m;
    model_open(&m, &(struct setup){.world = 3});
    come(&m, 0);
    come(&m, 1);
    model_run_for(&m, GW_US);
    die(&m, 1);
    gw_registrar_gone(m.registrar, address_of(1), gw_mem_now(m.mem));
    assert_int_equal(gw_registrar_present(m.registrar), 1);
    come(&m, 2);
    model_run_for(&m, GW_MS);
    assert_int_equal(gw_mesh_state(m.ranks[0].mesh), GW_MESH_MEETING);
    rank_return(&m, 1);
    come(&m, 1);
    model_run(&m);
    expect_state(&m, GW_MESH_MET);
    model_close(&m);
}

/* Who has said BYE is not lost, whenever its process goes. */
static void registrar__misses_nobody_who_has_said_bye(void **state)
{
    (void)state;
    struct model m;
    open_met(&m, &(struct setup){.world = 3});
    talk(&m, 0, 1, 1);
    leave(&m, 0);
    model_run_for(&m, GW_MS);
    die(&m, 0);
    gw_registrar_gone(m.registrar, address_of(0), gw_mem_now(m.mem));
    model_run_for(&m, GW_MS);
    assert_int_equal(gw_mesh_state(m.ranks[1].mesh), GW_MESH_MET);
    leave(&m, 1);
    leave(&m, 2);
    model_run(&m);
    expect_last(&m, 1, GW_MESH_EVENT_LEFT);
    expect_last(&m, 2, GW_MESH_EVENT_LEFT);
    model_close(&m);
}

/* Who has not, is; and those who wait for all to leave hear it. */
static void registrar__misses_who_dies_before_its_bye(void **state)
{
    (void)state;
    struct model m;
    open_met(&m, &(struct setup){.world = 3});
    talk(&m, 0, 1, 1);
    leave(&m, 0);
    model_run_for(&m, GW_MS);
    die(&m, 2);
    gw_registrar_gone(m.registrar, address_of(2), gw_mem_now(m.mem));
    model_run(&m);
    expect_all(&m, &(struct gw_mesh_failure){GW_JOB_LOST, 2, 3});
    model_close(&m);
}

/* The next job of the same number, of other processes, while sessions of the last one linger. */
static void registrar__begins_again(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 8; i++) {
        bool has_failed = i & 1, goes_late = i & 2;
        struct model m;
        open_met(&m, &(struct setup){.world = 2, .is_bare = i & 4});
        if (has_failed)
            give_up(&m, 0, GW_JOB_MISMATCH, 1);
        else
            leave_all(&m);
        model_run(&m);
        assert_int_equal(gw_registrar_present(m.registrar), 2);
        /* An old one again: that is no new job. */
        come(&m, 1);
        assert_int_equal(gw_registrar_phase(m.registrar), GW_REGISTRAR_ENDED);
        struct gw_rank_place new[2] = {{.address = 101}, {.address = 102}};
        assert_int_equal(come_at(&m, 1, &new[1], IS_NEW), GW_JOB_OK);
        assert_int_equal(gw_registrar_phase(m.registrar), GW_REGISTRAR_COLLECTING);
        assert_int_equal(gw_registrar_present(m.registrar), 1);
        gw_registrar_gone(m.registrar, address_of(1), gw_mem_now(m.mem)); /* nobody any more */
        if (!goes_late)
            gw_registrar_gone(m.registrar, address_of(0), gw_mem_now(m.mem));
        assert_int_equal(gw_registrar_present(m.registrar), 1);
        gw_registrar_gone(m.registrar, 102, gw_mem_now(m.mem));
        assert_int_equal(gw_registrar_present(m.registrar), 0);
        /* The same hosts again, with the other rank each. */
        die(&m, 0);
        die(&m, 1);
        rank_return(&m, 0);
        rank_return(&m, 1);
        come_all(&m);
        model_run(&m);
        expect_state(&m, GW_MESH_MET);
        talk(&m, 0, 1, 1);
        leave_all(&m);
        model_close(&m);
    }
}

/* An old rank says something: it is not about the new job. */
static void registrar__does_not_listen_to_the_last_job(void **state)
{
    (void)state;
    for (uint32_t is_bare = 0; is_bare < 2; is_bare++) {
        struct model m;
        open_met(&m, &(struct setup){.world = 2, .is_bare = is_bare, .keeps_ways = true});
        struct gw_rank_place new = {.address = 101};
        give_up(&m, 0, GW_JOB_MISMATCH, 1);
        take_events(&m, 0);
        model_run_for(&m, 3 * LATENCY + GW_US); /* the registrar has it, rank 1 not yet */
        assert_int_equal(gw_mesh_state(m.ranks[1].mesh), GW_MESH_MET);
        assert_int_equal(gw_registrar_phase(m.registrar), GW_REGISTRAR_ENDED);
        assert_int_equal(come_at(&m, 0, &new, IS_NEW), GW_JOB_OK);
        give_up(&m, 1, GW_JOB_OVERFLOW, 0);
        model_run(&m);
        assert_int_equal(gw_registrar_phase(m.registrar), GW_REGISTRAR_COLLECTING);
        assert_int_equal(gw_registrar_present(m.registrar), 1);
        gw_registrar_gone(m.registrar, 101, gw_mem_now(m.mem));
        model_close(&m);
    }
}

static void registrar_come__refuses(void **state)
{
    (void)state;
    struct model m;
    model_open(&m, &(struct setup){.world = 3, .notice = 4});
    struct gw_registrar *registrar = m.registrar;
    struct gw_rank_place nowhere = {.address = 0};
    assert_int_equal(come_at(&m, 3, &m.places[0], IS_NEW), GW_JOB_RANK);
    assert_int_equal(come_at(&m, 0, &nowhere, IS_NEW), GW_JOB_RANK);
    come(&m, 0);
    assert_int_equal(come_at(&m, 0, &m.places[1], IS_NEW), GW_JOB_RANK);
    assert_int_equal(come_at(&m, 1, &m.places[0], IS_NEW), GW_JOB_RANK);
    m.setup.notice = 5;
    assert_int_equal(come_at(&m, 1, &m.places[1], IS_NEW), GW_JOB_NOTICE);
    m.setup.notice = 4;
    assert_int_equal(gw_registrar_present(registrar), 1);
    come(&m, 1);
    come(&m, 2);
    assert_int_equal(come_at(&m, 1, &m.places[4], IS_NEW), GW_JOB_RANK);
    assert_int_equal(gw_registrar_present(registrar), 3);
    model_run(&m);
    expect_state(&m, GW_MESH_MET);
    model_close(&m);
}

/* The threshold of a formula is the same for all; there may be none. */
static void registrar__finds_the_threshold_of_all(void **state)
{
    (void)state;
    struct gw_notice_path path = {.rtt = 100 * GW_US, .rate_bps = RATE_BPS, .packet = MTU + HDR};
    for (uint32_t i = 0; i < 3; i++) {
        struct model m;
        model_open(&m, &(struct setup){.world = 2, .notice = GW_NOTICE_FORMULA});
        uint8_t units = 0;
        if (i == 1)
            gw_registrar_set_notice_path(m.registrar, &path);
        else
            path = (struct gw_notice_path){
                .rtt = m.path.brtt, .rate_bps = RATE_BPS, .packet = MTU + HDR};
        if (i == 2) {
            path.rtt = 100 * GW_MS;
            gw_registrar_set_notice_path(m.registrar, &path);
            come_all(&m);
            model_run(&m);
            expect_all(&m, &(struct gw_mesh_failure){GW_JOB_NOTICE, 2, 2});
        } else {
            come_all(&m);
            model_run(&m);
            assert_int_equal(gw_notice_units(GW_NOTICE_FORMULA, &path, &units), GW_OK);
            assert_int_equal(gw_mesh_notice(m.ranks[0].mesh).units, units);
            assert_int_equal(gw_mesh_notice(m.ranks[1].mesh).units, units);
            assert_int_equal(gw_mesh_notice(m.ranks[1].mesh).job, 9);
        }
        path =
            (struct gw_notice_path){.rtt = 100 * GW_US, .rate_bps = RATE_BPS, .packet = MTU + HDR};
        model_close(&m);
    }
}

/* Who said BYE, went, and comes when the job has ended is of the next one, though at the same
 * address, and as another rank. */
static void registrar__knows_an_address_of_the_last_job(void **state)
{
    (void)state;
    for (uint32_t is_other = 0; is_other < 2; is_other++) {
        struct model m;
        open_met(&m, &(struct setup){.world = 2});
        leave(&m, 0);
        model_run(&m);
        if (!is_other)
            gw_registrar_gone(m.registrar, address_of(0), gw_mem_now(m.mem));
        leave(&m, 1);
        model_run(&m);
        assert_int_equal(gw_registrar_phase(m.registrar), GW_REGISTRAR_ENDED);
        assert_int_equal(come_at(&m, is_other, &m.places[0], IS_NEW), GW_JOB_OK);
        assert_int_equal(gw_registrar_phase(m.registrar), GW_REGISTRAR_COLLECTING);
        assert_int_equal(gw_registrar_present(m.registrar), 1);
        gw_registrar_gone(m.registrar, address_of(0), gw_mem_now(m.mem));
        assert_int_equal(gw_registrar_present(m.registrar), 0);
        model_close(&m);
    }
}

/* A registrar that has restarted, and a rank with it, who comes before or after the others: their
 * job is over, and its own has begun. */
static void registrar__does_not_mix_two_jobs(void **state)
{
    (void)state;
    const struct gw_rank_place new = {.address = 101}, older = {.address = 102};
    for (uint32_t is_first = 0; is_first < 2; is_first++) {
        struct model m;
        open_met(&m, &(struct setup){.world = 3});
        home_die(&m);
        die(&m, 1);
        gw_mesh_registrar_down(m.ranks[0].mesh, gw_mem_now(m.mem));
        gw_mesh_registrar_down(m.ranks[2].mesh, gw_mem_now(m.mem));
        home_return(&m);
        if (!is_first) {
            come(&m, 0);
            come(&m, 2);
        }
        assert_int_equal(come_at(&m, 1, &new, IS_NEW), GW_JOB_OK);
        assert_int_equal(come_at(&m, 1, &m.places[1], HAS_MET), GW_JOB_LOST);
        assert_int_equal(come_at(&m, 2, &older, HAS_MET), GW_JOB_LOST);
        assert_int_equal(gw_registrar_phase(m.registrar), GW_REGISTRAR_COLLECTING);
        assert_int_equal(gw_registrar_present(m.registrar), 1);
        model_run(&m);
        if (!is_first)
            expect_all(&m, &(struct gw_mesh_failure){GW_JOB_LOST, 1, 3});
        gw_registrar_gone(m.registrar, 101, gw_mem_now(m.mem));
        assert_int_equal(come_at(&m, 2, &older, HAS_MET), GW_JOB_LOST);
        model_close(&m);
    }
}

/* Who had a seat and has not met anybody can be of either job: it stays when theirs is over. */
static void registrar__keeps_who_has_met_nobody(void **state)
{
    (void)state;
    struct model m;
    model_open(&m, &(struct setup){.world = 3});
    const struct gw_rank_place met = {.address = 101}, other = {.address = 102};
    assert_int_equal(come_at(&m, 0, &met, HAS_MET), GW_JOB_OK);
    assert_int_equal(come_at(&m, 1, &m.places[1], WAS_SEATED), GW_JOB_OK);
    assert_int_equal(come_at(&m, 2, &m.places[2], IS_NEW), GW_JOB_OK);
    assert_int_equal(gw_registrar_present(m.registrar), 2);
    assert_int_equal(come_at(&m, 0, &other, IS_NEW), GW_JOB_OK);
    assert_int_equal(gw_registrar_phase(m.registrar), GW_REGISTRAR_RUNNING);
    model_close(&m);
}

/* Who was seated at another home, and nowhere else, is of the job of those who come with a table
 * only if it is in that. Else they are dismissed when all have come, and it stays. */
static void registrar__compares_tables_when_all_have_come(void **state)
{
    (void)state;
    const struct gw_rank_place other = {.address = 101};
    for (uint32_t is_other = 0; is_other < 2; is_other++) {
        struct model m;
        open_met(&m, &(struct setup){.world = 3});
        home_die(&m);
        if (is_other)
            die(&m, 1);
        for (uint32_t rank = 0; rank < 3; rank++)
            if (rank != 1 || !is_other)
                gw_mesh_registrar_down(m.ranks[rank].mesh, gw_mem_now(m.mem));
        home_return(&m);
        const struct gw_rank_place *place = is_other ? &other : &m.places[1];
        assert_int_equal(come_at(&m, 1, place, WAS_SEATED), GW_JOB_OK);
        come(&m, 0);
        come(&m, 2);
        model_run(&m);
        assert_int_equal(gw_registrar_phase(m.registrar),
                         is_other ? GW_REGISTRAR_COLLECTING : GW_REGISTRAR_RUNNING);
        assert_int_equal(gw_registrar_present(m.registrar), is_other ? 1 : 3);
        if (is_other)
            expect_all(&m, &(struct gw_mesh_failure){GW_JOB_LOST, 1, 3});
        else
            expect_state(&m, GW_MESH_MET);
        model_close(&m);
    }
}

/* Whoever says again that it is a rank that has come does not change with which table that came. */
static void registrar__keeps_the_table_that_a_rank_came_with(void **state)
{
    (void)state;
    struct model m;
    model_open(&m, &(struct setup){.world = 3});
    assert_int_equal(come_at(&m, 0, &m.places[0], IS_NEW), GW_JOB_OK);
    assert_int_equal(come_at(&m, 0, &m.places[0], HAS_MET), GW_JOB_OK);
    assert_int_equal(come_at(&m, 1, &m.places[1], IS_NEW), GW_JOB_OK);
    assert_int_equal(gw_registrar_present(m.registrar), 2);
    assert_int_equal(come_at(&m, 2, &m.places[2], IS_NEW), GW_JOB_OK);
    assert_int_equal(gw_registrar_phase(m.registrar), GW_REGISTRAR_RUNNING);
    model_close(&m);
}

/* Somebody new with whom the others could not go on does not end their job. */
static void registrar__refuses_a_new_one_before_it_dismisses(void **state)
{
    (void)state;
    struct model m;
    model_open(&m, &(struct setup){.world = 3});
    const struct gw_rank_place met = {.address = 101}, last = {.address = 102};
    assert_int_equal(come_at(&m, 0, &met, HAS_MET), GW_JOB_OK);
    assert_int_equal(come_at(&m, 1, &m.places[1], WAS_SEATED), GW_JOB_OK);
    m.setup.notice = GW_NOTICE_FORMULA + 1;
    assert_int_equal(come_at(&m, 2, &m.places[2], IS_NEW), GW_JOB_NOTICE);
    assert_int_equal(gw_registrar_present(m.registrar), 2);
    m.setup.notice = 0;
    assert_int_equal(come_at(&m, 2, &last, HAS_MET), GW_JOB_OK);
    model_close(&m);
}

/* Who has met others elsewhere is then of a job before it. */
static void registrar__knows_that_a_job_has_ended(void **state)
{
    (void)state;
    const struct gw_rank_place older = {.address = 101};
    struct model m;
    open_met(&m, &(struct setup){.world = 2});
    leave_all(&m);
    model_run(&m);
    assert_int_equal(gw_registrar_phase(m.registrar), GW_REGISTRAR_ENDED);
    assert_int_equal(come_at(&m, 1, &older, HAS_MET), GW_JOB_LOST);
    assert_int_equal(come_at(&m, 1, &older, WAS_SEATED), GW_JOB_OK);
    assert_int_equal(gw_registrar_present(m.registrar), 1);
    model_close(&m);
}

/* One of an earlier job comes to the one that runs. */
static void registrar__knows_who_has_met_others(void **state)
{
    (void)state;
    struct model m;
    open_met(&m, &(struct setup){.world = 2});
    const struct gw_rank_place older = {.address = 101};
    assert_int_equal(come_at(&m, 1, &older, IS_NEW), GW_JOB_RANK);
    assert_int_equal(come_at(&m, 1, &older, HAS_MET), GW_JOB_LOST);
    come(&m, 1); /* itself */
    model_run(&m);
    expect_state(&m, GW_MESH_MET);
    model_close(&m);
}

/* A table in which we are somewhere else is not for us. */
static void mesh__refuses_a_table_without_itself(void **state)
{
    (void)state;
    struct model m;
    model_open(&m, &(struct setup){.world = 2});
    struct gw_rank_place swapped[2] = {m.places[1], m.places[0]};
    for (uint16_t rank = 0; rank < 2; rank++) {
        gw_mesh_set_registrar(m.ranks[rank].mesh, address_of(HOME), &m.path, gw_mem_now(m.mem));
        assert_int_equal(come_at(&m, rank, &swapped[rank], IS_NEW), GW_JOB_OK);
    }
    model_run_for(&m, GW_MS);
    for (uint32_t rank = 0; rank < 2; rank++)
        assert_int_equal(expect_last(&m, rank, GW_MESH_EVENT_FAILED)->reason, GW_JOB_BROKEN);
    model_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mesh_fail__is_told_to_all),
        cmocka_unit_test(mesh_fail__is_told_without_the_registrar),
        cmocka_unit_test(mesh_fail__is_told_before_the_table_has_come),
        cmocka_unit_test(mesh_fail__is_told_to_a_registrar_that_comes_back),
        cmocka_unit_test(mesh__fails_when_a_rank_is_lost),
        cmocka_unit_test(mesh__fails_when_it_does_not_meet),
        cmocka_unit_test(registrar__takes_another_process_while_it_collects),
        cmocka_unit_test(registrar__misses_nobody_who_has_said_bye),
        cmocka_unit_test(registrar__misses_who_dies_before_its_bye),
        cmocka_unit_test(registrar__begins_again),
        cmocka_unit_test(registrar__does_not_listen_to_the_last_job),
        cmocka_unit_test(registrar__knows_an_address_of_the_last_job),
        cmocka_unit_test(mesh__refuses_a_table_without_itself),
        cmocka_unit_test(registrar_come__refuses),
        cmocka_unit_test(registrar__does_not_mix_two_jobs),
        cmocka_unit_test(registrar__knows_who_has_met_others),
        cmocka_unit_test(registrar__keeps_who_has_met_nobody),
        cmocka_unit_test(registrar__compares_tables_when_all_have_come),
        cmocka_unit_test(registrar__keeps_the_table_that_a_rank_came_with),
        cmocka_unit_test(registrar__refuses_a_new_one_before_it_dismisses),
        cmocka_unit_test(registrar__knows_that_a_job_has_ended),
        cmocka_unit_test(registrar__finds_the_threshold_of_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
