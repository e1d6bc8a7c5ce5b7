/*
 * Ranks that meet, talk and leave, with their registrar, over real flows. How jobs fail is in
 * mesh_failure_test.c.
 */
#include "mesh_fixture.h"

#include "base/prng.h"

/* All come, in any network, and know the same table. */
static void mesh__meets_when_all_have_come(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 16; i++) {
        struct setup setup = {
            .world = 1 + i % WORLD_MAX, .has_ways = i & 1, .is_bare = i & 4, .notice = 2};
        struct model m;
        model_open(&m, &setup);
        if (i & 8)
            model_worsen(&m);
        for (uint32_t rank = 0; rank < setup.world; rank++) {
            model_run_for(&m, GW_MS);
            expect_state(&m, GW_MESH_MEETING);
            come(&m, rank);
        }
        model_run(&m);
        expect_state(&m, GW_MESH_MET);
        for (uint32_t rank = 0; rank < setup.world; rank++) {
            const struct gw_mesh *mesh = m.ranks[rank].mesh;
            expect_last(&m, rank, GW_MESH_EVENT_MET);
            assert_int_equal(gw_mesh_notice(mesh).units, setup.is_bare ? 0 : 2);
            for (uint32_t other = 0; other < setup.world; other++) {
                assert_memory_equal(gw_mesh_place(mesh, other), &m.places[other],
                                    sizeof(m.places[other]));
                assert_int_equal(gw_mesh_addresses(mesh)[other], address_of(other));
                assert_int_equal(gw_mesh_rank_of(mesh, address_of(other)), other);
            }
            assert_int_equal(gw_mesh_rank_of(mesh, address_of(HOME)), setup.world);
        }
        assert_int_equal(gw_registrar_present(m.registrar), setup.world);
        for (uint32_t rank = 0; rank < setup.world; rank++)
            for (uint32_t other = 0; other < setup.world; other++)
                if (rank != other)
                    talk(&m, rank, other, 1 + rank * WORLD_MAX + other);
        leave_all(&m);
        assert_int_equal(gw_registrar_phase(m.registrar), GW_REGISTRAR_ENDED);
        model_close(&m);
    }
}

/* A way is wanted once, until it has come and gone. */
static void mesh__wants_the_ways_that_messages_need(void **state)
{
    (void)state;
    struct model m;
    model_open(&m, &(struct setup){.world = 3, .keeps_ways = true});
    struct rank *own = &m.ranks[0];
    assert_false(gw_mesh_reaches(own->mesh, 2, true)); /* before the table is known */
    come_all(&m);
    model_run(&m);
    assert_int_equal(own->event_count, 2);
    assert_int_equal(own->events[0].kind, GW_MESH_EVENT_MET);
    assert_int_equal(expect_last(&m, 0, GW_MESH_EVENT_WANTS)->rank, 2);
    assert_false(gw_mesh_reaches(own->mesh, 2, true));
    assert_false(gw_mesh_reaches(own->mesh, 1, false));
    assert_true(gw_mesh_reaches(own->mesh, 0, true)); /* itself */
    model_run(&m);
    assert_int_equal(own->event_count, 2);
    assert_false(gw_mesh_way_up(own->mesh, 2, address_of(1), gw_mem_now(m.mem)));
    assert_false(gw_mesh_way_up(own->mesh, 0, address_of(0), gw_mem_now(m.mem)));
    assert_false(gw_mesh_way_up(own->mesh, 3, address_of(2), gw_mem_now(m.mem)));
    way_up(&m, 0, 2);
    assert_true(gw_mesh_reaches(own->mesh, 2, true));
    talk(&m, 0, 2, 1);
    gw_mesh_way_down(own->mesh, 2, false, gw_mem_now(m.mem));
    assert_false(gw_mesh_reaches(own->mesh, 2, true));
    model_run(&m);
    assert_int_equal(own->event_count, 3);
    assert_int_equal(expect_last(&m, 0, GW_MESH_EVENT_WANTS)->rank, 2);
    expect_state(&m, GW_MESH_MET);
    model_close(&m);
}

/* Ways that come before the table are believed until it says otherwise. */
static void mesh__checks_early_ways_by_the_table(void **state)
{
    (void)state;
    struct model m;
    model_open(&m, &(struct setup){.world = 4, .keeps_ways = true});
    struct gw_mesh *mesh = m.ranks[0].mesh;
    gw_time now = gw_mem_now(m.mem);
    assert_false(gw_mesh_way_up(mesh, 1, 0, now));
    assert_false(gw_mesh_way_up(mesh, 1, address_of(0), now));
    assert_true(gw_mesh_way_up(mesh, 1, address_of(3), now)); /* a lie */
    assert_false(gw_mesh_way_up(mesh, 2, address_of(3), now));
    assert_true(gw_mesh_way_up(mesh, 2, address_of(2), now));
    assert_false(gw_mesh_reaches(mesh, 2, false));
    come_all(&m);
    model_run(&m);
    assert_true(gw_mesh_reaches(mesh, 2, false));
    assert_false(gw_mesh_reaches(mesh, 1, false));
    assert_false(gw_mesh_reaches(mesh, 3, false));
    model_close(&m);
}

static void mesh__knows_the_path_to_the_farthest(void **state)
{
    (void)state;
    struct model m;
    model_open(&m, &(struct setup){.world = 4, .keeps_ways = true});
    struct gw_mesh *mesh = m.ranks[0].mesh;
    come_all(&m);
    model_run(&m);
    assert_true(gw_mesh_path_all(mesh).brtt == m.path.brtt); /* the registrar's: nobody is up */
    struct gw_path far = m.path, slow = m.path;
    far.brtt = far.brtt_max = 3 * m.path.brtt;
    far.bdp = 3 * m.path.bdp;
    slow.rate_bps = m.path.rate_bps / 4;
    gw_mesh_set_path(mesh, 1, &far);
    gw_mesh_set_path(mesh, 2, &slow);
    way_up(&m, 0, 3);
    assert_true(gw_mesh_path_all(mesh).brtt == m.path.brtt);
    way_up(&m, 0, 1);
    assert_true(gw_mesh_path_all(mesh).brtt == far.brtt);
    assert_int_equal(gw_mesh_path_all(mesh).bdp, far.bdp);
    way_up(&m, 0, 2);
    assert_true(gw_mesh_path_all(mesh).brtt == far.brtt);
    assert_true(gw_mesh_path_all(mesh).rate_bps == slow.rate_bps);
    assert_in_range(gw_mesh_path_all(mesh).bdp, far.bdp / 4, far.bdp / 4 + 1);
    model_close(&m);
}

/* Who has talked to nobody is needed by nobody. */
static void mesh_leave__waits_only_for_those_who_may_need_us(void **state)
{
    (void)state;
    for (uint32_t is_bare = 0; is_bare < 2; is_bare++) {
        struct model m;
        model_open(&m, &(struct setup){.world = 3, .is_bare = is_bare});
        come_all(&m);
        model_run(&m);
        talk(&m, 1, 2, 5);
        leave(&m, 0);
        model_run(&m);
        expect_last(&m, 0, GW_MESH_EVENT_LEFT);
        part(&m, 0);
        leave(&m, 1);
        model_run_for(&m, 10 * STALL);
        assert_int_equal(gw_mesh_state(m.ranks[1].mesh), GW_MESH_LEAVING);
        assert_int_equal(gw_registrar_phase(m.registrar), GW_REGISTRAR_RUNNING);
        talk(&m, 2, 1, 6); /* it still takes what others send */
        leave(&m, 2);
        model_run(&m);
        expect_last(&m, 1, GW_MESH_EVENT_LEFT);
        expect_last(&m, 2, GW_MESH_EVENT_LEFT);
        assert_int_equal(gw_registrar_phase(m.registrar), GW_REGISTRAR_ENDED);
        model_close(&m);
    }
}

/* Whoever has sent something, received it, or keeps a value that somebody has pushed. */
static void mesh_leave__knows_who_has_talked(void **state)
{
    (void)state;
    enum { SENDS, RECEIVES, KEEPS, KINDS };
    static unsigned char byte;
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        struct model m;
        model_open(&m, &(struct setup){.world = 2, .has_ways = true}); /* a way would do */
        come_all(&m);
        model_run(&m);
        gw_time now = gw_mem_now(m.mem);
        struct gw_message send = {.rank = 1, .data = &byte, .bytes = 1};
        struct gw_store_call push = {.data = &byte, .shape = {1, GW_DTYPE_U8}};
        while (gw_mix64(push.key) % 2 != 0)
            push.key++;
        if (kind == SENDS) /* nobody takes it yet */
            assert_int_equal(gw_messages_start(m.ranks[0].messages, &send, now), GW_OK);
        else if (kind == RECEIVES)
            talk(&m, 1, 0, 3);
        else
            assert_int_equal(gw_store_start(m.ranks[1].store, &push), GW_OK);
        model_run_for(&m, GW_MS);
        leave(&m, 0);
        model_run_for(&m, GW_MS);
        assert_int_equal(gw_mesh_state(m.ranks[0].mesh), GW_MESH_LEAVING);
        model_close(&m);
    }
}

/* The other end would see the session end, and take us for lost. */
static void mesh_leave__waits_for_those_with_whom_it_has_a_way(void **state)
{
    (void)state;
    struct model m;
    model_open(&m, &(struct setup){.world = 2});
    come_all(&m);
    model_run(&m);
    way_up(&m, 1, 0);
    leave(&m, 0);
    model_run_for(&m, 10 * STALL);
    assert_int_equal(gw_mesh_state(m.ranks[0].mesh), GW_MESH_LEAVING);
    model_close(&m);
}

/* Collectives go past the mesh, which is told of them. */
static void mesh_leave__counts_messages_that_it_is_told_of(void **state)
{
    (void)state;
    struct model m;
    model_open(&m, &(struct setup){.world = 2});
    come_all(&m);
    model_run(&m);
    gw_mesh_note_message(m.ranks[0].mesh);
    leave(&m, 0);
    model_run_for(&m, 10 * STALL);
    assert_int_equal(gw_mesh_state(m.ranks[0].mesh), GW_MESH_LEAVING);
    model_close(&m);
}

/* Nobody is left to say that all have left. */
static void mesh_leave__ends_without_the_registrar(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 16; i++) {
        bool is_told = i & 1, has_talked = i & 2, leaves_first = i & 4;
        struct model m;
        model_open(&m, &(struct setup){.world = 2, .is_bare = i & 8});
        come_all(&m);
        model_run(&m);
        if (has_talked)
            talk(&m, 0, 1, 5);
        if (leaves_first && has_talked) {
            leave(&m, 0);
            model_run_for(&m, GW_MS);
        }
        home_die(&m);
        gw_time begin = gw_mem_now(m.mem);
        if (is_told || (leaves_first && has_talked))
            gw_mesh_registrar_down(m.ranks[0].mesh, begin);
        leave(&m, 0);
        model_run_for(&m, STALL / 2);
        bool at_once = is_told && !has_talked;
        assert_int_equal(m.ranks[0].events[m.ranks[0].event_count - 1].kind == GW_MESH_EVENT_LEFT,
                         at_once);
        model_run_for(&m, 5 * STALL);
        expect_last(&m, 0, GW_MESH_EVENT_LEFT);
        model_close(&m);
    }
}

/* A registrar without memory finds the ranks again, and the job goes on meanwhile. */
static void mesh__survives_a_registrar_that_restarts(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 8; i++) {
        bool is_told = i & 1, leaves = i & 2;
        struct model m;
        model_open(&m, &(struct setup){.world = 3, .is_bare = i & 4});
        come_all(&m);
        model_run(&m);
        talk(&m, 0, 1, 1);
        if (leaves) {
            leave(&m, 0);
            model_run_for(&m, GW_MS);
        }
        home_die(&m);
        for (uint32_t rank = 0; is_told && rank < 3; rank++)
            gw_mesh_registrar_down(m.ranks[rank].mesh, gw_mem_now(m.mem));
        model_run_for(&m, GW_MS);
        if (!(is_told && leaves)) /* who waits for nobody would leave in that time */
            talk(&m, 1, 2, 2);
        home_return(&m);
        come(&m, 1);
        come(&m, 0);
        model_run_for(&m, GW_MS);
        assert_int_equal(gw_registrar_phase(m.registrar), GW_REGISTRAR_COLLECTING);
        come(&m, 2);
        model_run_for(&m, 10 * STALL);
        assert_int_equal(gw_registrar_phase(m.registrar), GW_REGISTRAR_RUNNING);
        for (uint32_t rank = 0; rank < 3; rank++)
            assert_int_equal(gw_mesh_state(m.ranks[rank].mesh),
                             leaves && rank == 0 ? GW_MESH_LEAVING : GW_MESH_MET);
        talk(&m, 2, 0, 3);
        leave_all(&m);
        assert_int_equal(gw_registrar_phase(m.registrar), GW_REGISTRAR_ENDED);
        model_close(&m);
    }
}

/* Some have left and do not come to the new registrar, so it never knows that all leave. */
static void mesh_leave__does_not_wait_for_those_who_left_before_a_restart(void **state)
{
    (void)state;
    struct model m;
    model_open(&m, &(struct setup){.world = 3});
    come_all(&m);
    model_run(&m);
    talk(&m, 0, 1, 1);
    leave(&m, 2);
    leave(&m, 0);
    model_run(&m);
    expect_last(&m, 2, GW_MESH_EVENT_LEFT);
    home_die(&m);
    home_return(&m);
    come(&m, 0);
    come(&m, 1);
    leave(&m, 1);
    model_run_for(&m, STALL / 2);
    assert_int_equal(gw_mesh_state(m.ranks[0].mesh), GW_MESH_LEAVING);
    model_run_for(&m, STALL);
    expect_last(&m, 0, GW_MESH_EVENT_LEFT);
    part(&m, 0);
    gw_mesh_registrar_down(m.ranks[1].mesh, gw_mem_now(m.mem));
    model_run_for(&m, 2 * STALL);
    expect_last(&m, 1, GW_MESH_EVENT_LEFT);
    model_close(&m);
}

/* The session of a rank and the registrar ends and begins again; neither has lost its memory. */
static void mesh__survives_a_session_that_breaks(void **state)
{
    (void)state;
    struct model m;
    model_open(&m, &(struct setup){.world = 2});
    model_worsen(&m);
    come_all(&m);
    for (uint32_t i = 0; i < 20; i++) {
        come(&m, i % 2);
        model_run_for(&m, 7 * GW_US);
    }
    model_run(&m);
    expect_state(&m, GW_MESH_MET);
    talk(&m, 0, 1, 1);
    leave(&m, 0);
    for (uint32_t i = 0; i < 20; i++) {
        gw_mesh_registrar_down(m.ranks[0].mesh, gw_mem_now(m.mem));
        come(&m, 0);
        model_run_for(&m, 7 * GW_US);
    }
    model_run_for(&m, 10 * STALL);
    assert_int_equal(gw_mesh_state(m.ranks[0].mesh), GW_MESH_LEAVING); /* its table came again */
    leave(&m, 1);
    model_run(&m);
    expect_last(&m, 0, GW_MESH_EVENT_LEFT);
    expect_last(&m, 1, GW_MESH_EVENT_LEFT);
    model_close(&m);
}

/* Who comes by another table than ours is not of our job. */
static void mesh__ignores_the_table_of_another_job(void **state)
{
    (void)state;
    struct model m;
    model_open(&m, &(struct setup){.world = 2});
    come_all(&m);
    model_run(&m);
    home_die(&m);
    home_return(&m);
    m.places[1].locator[0] ^= 1;
    come_all(&m);
    model_run(&m);
    m.places[1].locator[0] ^= 1;
    expect_state(&m, GW_MESH_MET);
    assert_memory_equal(gw_mesh_place(m.ranks[0].mesh, 1), &m.places[1], sizeof(m.places[1]));
    assert_int_equal(m.ranks[0].event_count, 1);
    model_close(&m);
}

/* Messages that the registrar has sent, each once. */
static uint64_t told_by_home(const struct model *m)
{
    const struct gw_endpoint_stats *stats = gw_endpoint_stats(m->home.endpoint);
    return stats->data_sent - stats->retransmits;
}

/* Whoever says BYE again, since its session had ended, while it is told that all have left. */
static void mesh_leave__is_told_once(void **state)
{
    (void)state;
    struct model m;
    struct gw_mem_link cut = {.latency = LATENCY, .rate_bps = RATE_BPS, .lose = UINT64_MAX};
    model_open(&m, &(struct setup){.world = 2});
    come_all(&m);
    model_run(&m);
    talk(&m, 0, 1, 1);
    gw_mem_change(m.mem, m.links[1], &cut);
    leave(&m, 0);
    leave(&m, 1);
    model_run_for(&m, GW_MS);
    assert_int_equal(gw_registrar_phase(m.registrar), GW_REGISTRAR_ENDED);
    assert_int_equal(gw_mesh_state(m.ranks[0].mesh), GW_MESH_LEAVING);
    uint64_t told = told_by_home(&m);
    gw_mesh_registrar_down(m.ranks[0].mesh, gw_mem_now(m.mem));
    come(&m, 0);
    model_run_for(&m, GW_MS);
    cut.lose = 0;
    gw_mem_change(m.mem, m.links[1], &cut);
    model_run(&m);
    expect_last(&m, 0, GW_MESH_EVENT_LEFT);
    assert_int_equal(told_by_home(&m), told);
    model_close(&m);
}

/* Who leaves before all have met has met nobody. */
static void mesh_leave__works_before_the_table(void **state)
{
    (void)state;
    struct model m;
    model_open(&m, &(struct setup){.world = 2});
    leave(&m, 1); /* nobody knows it */
    model_run_for(&m, 0);
    expect_last(&m, 1, GW_MESH_EVENT_LEFT);
    come(&m, 0);
    leave(&m, 0);
    model_run(&m);
    expect_last(&m, 0, GW_MESH_EVENT_LEFT);
    assert_int_equal(gw_registrar_phase(m.registrar), GW_REGISTRAR_COLLECTING);
    part(&m, 0);
    assert_int_equal(gw_registrar_present(m.registrar), 0);
    model_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mesh__meets_when_all_have_come),
        cmocka_unit_test(mesh__wants_the_ways_that_messages_need),
        cmocka_unit_test(mesh__checks_early_ways_by_the_table),
        cmocka_unit_test(mesh__knows_the_path_to_the_farthest),
        cmocka_unit_test(mesh_leave__waits_only_for_those_who_may_need_us),
        cmocka_unit_test(mesh_leave__knows_who_has_talked),
        cmocka_unit_test(mesh_leave__waits_for_those_with_whom_it_has_a_way),
        cmocka_unit_test(mesh_leave__counts_messages_that_it_is_told_of),
        cmocka_unit_test(mesh_leave__ends_without_the_registrar),
        cmocka_unit_test(mesh__survives_a_registrar_that_restarts),
        cmocka_unit_test(mesh_leave__does_not_wait_for_those_who_left_before_a_restart),
        cmocka_unit_test(mesh__survives_a_session_that_breaks),
        cmocka_unit_test(mesh__ignores_the_table_of_another_job),
        cmocka_unit_test(mesh_leave__is_told_once),
        cmocka_unit_test(mesh_leave__works_before_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
