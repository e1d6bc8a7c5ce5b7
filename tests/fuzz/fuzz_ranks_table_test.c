/*
 * Fuzz target: the table of ranks, as any registrar might send it, and what FAILURE says, as any
 * rank might.
 *
 * Property: what is read makes sense, and is written as the same bytes.
 */
#include "fuzz/replay.h"
#include "support.h"

#include "base/assert.h"
#include "core/job.h"
#include "core/notice.h"
#include "core/ranks/mesh_wire.h"
#include "core/ranks/ranks_table.h"

enum {
    WORLD_MAX = 8,
    TABLE_MAX = GW_RANKS_TABLE_ENTRY_SIZE * (1 + WORLD_MAX),
};

static uint32_t read_tables[WORLD_MAX + 1], refused, failures;

static void read_failure(const uint8_t *data)
{
    struct gw_mesh_failure failure, again;
    uint8_t bytes[GW_MESH_FAILURE_SIZE];
    if (!gw_mesh_failure_read(data, GW_MESH_FAILURE_SIZE, GW_WORLD_MAX, &failure))
        return;
    GW_ASSERT(failure.reason > GW_JOB_OK && failure.reason < GW_JOB_REASONS);
    GW_ASSERT(failure.about <= GW_WORLD_MAX && failure.found_by <= GW_WORLD_MAX);
    gw_mesh_failure_write(&failure, bytes);
    GW_ASSERT(memcmp(bytes, data, sizeof(bytes)) == 0);
    uint32_t tag = gw_mesh_failure_tag(&failure);
    GW_ASSERT(gw_mesh_is_failure_tag(tag) && tag < GW_MESH_TAG_TABLE);
    GW_ASSERT(gw_mesh_failure_of_tag(tag, GW_WORLD_MAX, &again));
    GW_ASSERT(memcmp(&again, &failure, sizeof(again)) == 0);
    failures++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gw_rank_place places[WORLD_MAX];
    uint8_t again[TABLE_MAX], units;
    uint16_t world = 0;
    while (world < WORLD_MAX && gw_ranks_table_size(world) < size)
        world++;
    if (size >= GW_MESH_FAILURE_SIZE)
        read_failure(data);
    if (world == 0 || !gw_ranks_table_read(data, size, world, places, &units)) {
        refused++;
        return 0;
    }
    GW_ASSERT(size == gw_ranks_table_size(world) && units <= GW_NOTICE_UNITS_MAX);
    for (uint32_t i = 0; i < world; i++)
        for (uint32_t j = 0; j <= i; j++)
            GW_ASSERT(places[i].address != (i == j ? 0 : places[j].address));
    gw_ranks_table_write(places, world, units, again);
    GW_ASSERT(memcmp(again, data, size) == 0);
    read_tables[world]++;
    return 0;
}

enum {
    ROUNDS = 200000,
};

static void check_reached(void)
{
    assert_in_range(read_tables[1], ROUNDS / 1000, ROUNDS);
    assert_in_range(read_tables[2], ROUNDS / 1000, ROUNDS);
    assert_in_range(read_tables[4], ROUNDS / 1000, ROUNDS);
    assert_in_range(failures, ROUNDS / 1000, ROUNDS);
    assert_in_range(refused, ROUNDS / 1000, ROUNDS);
}

const struct gw_test_target gw_test_target = {
    .corpus = "ranks_table",
    .seed = 1,
    .rounds = ROUNDS,
    .check_reached = check_reached,
};
