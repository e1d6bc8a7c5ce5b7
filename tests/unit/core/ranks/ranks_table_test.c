/* The table of ranks as bytes; what any registrar might send is in fuzz_ranks_table_test.c. */
#include "support.h"

#include "core/ranks/mesh_wire.h"
#include "core/ranks/ranks_table.h"

/* The layout, spelt out. */
static void ranks_table__is_big_endian(void **state)
{
    (void)state;
    struct gw_rank_place places[2] = {{.address = 0x01020304}, {.address = 5}};
    uint8_t bytes[GW_RANKS_TABLE_ENTRY_SIZE * 3], expected[sizeof(bytes)] = {0, 2, 7};
    memset(places[1].locator, 9, sizeof(places[1].locator));
    memcpy(expected + 24, (const uint8_t[]){1, 2, 3, 4}, 4);
    expected[51] = 5;
    memset(expected + 52, 9, 20);
    gw_ranks_table_write(places, 2, 7, bytes);
    assert_memory_equal(bytes, expected, sizeof(bytes));
    const struct gw_mesh_failure failure = {.reason = 7, .about = 0x102, .found_by = 3};
    gw_mesh_failure_write(&failure, bytes);
    assert_memory_equal(bytes, ((const uint8_t[]){0, 0, 0, 7, 0, 0, 1, 2, 0, 0, 0, 3}),
                        GW_MESH_FAILURE_SIZE);
}

static void ranks_table__refuses_nonsense(void **state)
{
    (void)state;
    static const struct {
        uint32_t at;
        uint8_t value;
    } changes[] = {
        {1, 3},   /* another world */
        {2, 16},  /* no such threshold */
        {3, 1},   /* reserved */
        {23, 1},  /* reserved */
        {27, 0},  /* no address */
        {51, 77}, /* one that another rank has */
    };
    struct gw_rank_place places[2] = {{.address = 77}, {.address = 78}}, back[3];
    uint8_t good[GW_RANKS_TABLE_ENTRY_SIZE * 4] = {0}, bad[sizeof(good)], units;
    size_t size = gw_ranks_table_size(2);
    gw_ranks_table_write(places, 2, 0, good);
    assert_true(gw_ranks_table_read(good, size, 2, back, &units));
    assert_false(gw_ranks_table_read(good, size - 1, 2, back, &units));
    assert_false(gw_ranks_table_read(good, size + 1, 2, back, &units));
    assert_false(gw_ranks_table_read(good, gw_ranks_table_size(3), 3, back, &units));
    for (uint32_t i = 0; i < GW_COUNT_OF(changes); i++) {
        memcpy(bad, good, sizeof(bad));
        bad[changes[i].at] = changes[i].value;
        assert_false(gw_ranks_table_read(bad, size, 2, back, &units));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_table__is_big_endian),
        cmocka_unit_test(ranks_table__refuses_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
