/*
 * Ranks that meet, talk, fail and leave, with their registrar, over real flows; each by itself and
 * in the worst order.
 */
#include "mesh_fixture.h"

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
        for (uint32_t rank = 0; rank < setup.world; rank++)
            gw_mesh_leave(m.ranks[rank].mesh, gw_mem_now(m.mem));
        model_run(&m);
        expect_state(&m, GW_MESH_OVER);
        for (uint32_t rank = 0; rank < setup.world; rank++)
            expect_last(&m, rank, GW_MESH_EVENT_LEFT);
        assert_int_equal(gw_registrar_phase(m.registrar), GW_REGISTRAR_ENDED);
        model_close(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mesh__meets_when_all_have_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
