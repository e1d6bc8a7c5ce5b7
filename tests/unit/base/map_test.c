/* The map against a plain list of pairs, and the cases that shift-back deletion can get wrong. */
#include "support.h"

#include "base/error.h"
#include "base/map.h"
#include "base/prng.h"

enum {
    ENTRIES = 24, /* gives 64 cells */
    KEYS = 40,    /* more than fit, so that a full map is met */
    STEPS = 20000,
    SEEDS = 8,
};

static struct gw_map *map_open(uint32_t entries)
{
    struct gw_map *map = malloc(sizeof(*map) + gw_map_size(entries));
    assert_non_null(map);
    gw_map_init(map, map + 1, entries);
    return map;
}

/* Values of the model; GW_MAP_NONE where the key is absent. Keys are spread over 64 bits. */
struct model {
    uint64_t keys[KEYS];
    uint32_t values[KEYS];
    uint32_t count;
};

static void check_against_model(const struct gw_map *map, const struct model *model)
{
    assert_int_equal(map->count, model->count);
    for (uint32_t i = 0; i < KEYS; i++)
        assert_int_equal(gw_map_get(map, model->keys[i]), model->values[i]);
}

static void step_both(struct gw_map *map, struct model *model, struct gw_prng *prng)
{
    uint32_t at = gw_prng_below(prng, KEYS);
    uint32_t *value = &model->values[at];
    if (gw_prng_below(prng, 2)) {
        gw_map_remove(map, model->keys[at]);
        model->count -= *value != GW_MAP_NONE;
        *value = GW_MAP_NONE;
        return;
    }
    uint32_t stored = gw_prng_below(prng, GW_MAP_NONE);
    bool refused = *value == GW_MAP_NONE && model->count == ENTRIES;
    assert_int_equal(gw_map_put(map, model->keys[at], stored), refused ? GW_ERR_NO_ROOM : GW_OK);
    if (!refused) {
        model->count += *value == GW_MAP_NONE;
        *value = stored;
    }
}

static void map_put__agrees_with_a_list(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        print_message("seed %u\n", (unsigned)seed);
        struct gw_prng prng = {.state = seed};
        struct gw_map *map = map_open(ENTRIES);
        struct model model = {.count = 0};
        for (uint32_t i = 0; i < KEYS; i++) {
            model.keys[i] = i ? gw_prng_next(&prng) : 0;
            model.values[i] = GW_MAP_NONE;
        }
        bool was_full = false;
        for (int step = 0; step < STEPS; step++) {
            step_both(map, &model, &prng);
            check_against_model(map, &model);
            was_full |= model.count == ENTRIES;
        }
        assert_true(was_full);
        free(map);
    }
}

/* The n-th key, counted from 0, whose home is cell `home`. */
static uint64_t key_at_home(const struct gw_map *map, uint32_t home, uint32_t n)
{
    for (uint64_t key = 0;; key++)
        if (((uint32_t)gw_mix64(key) & map->mask) == home && n-- == 0)
            return key;
}

/*
 * A cluster that begins in the last two cells and goes on in the first ones. Each key is removed
 * once from the full cluster; the others must stay in reach.
 */
static void map_remove__shifts_back_across_the_end(void **state)
{
    enum { CLUSTER = 6 };
    (void)state;
    for (uint32_t victim = 0; victim < CLUSTER; victim++) {
        struct gw_map *map = map_open(CLUSTER);
        const uint32_t homes[CLUSTER] = {map->mask - 1, map->mask, map->mask, 0, map->mask, 1};
        uint64_t keys[CLUSTER];
        for (uint32_t i = 0; i < CLUSTER; i++) {
            keys[i] = key_at_home(map, homes[i], i);
            assert_int_equal(gw_map_put(map, keys[i], i), GW_OK);
        }
        gw_map_remove(map, keys[victim]);
        for (uint32_t i = 0; i < CLUSTER; i++)
            assert_int_equal(gw_map_get(map, keys[i]), i == victim ? GW_MAP_NONE : i);
        assert_int_equal(gw_map_put(map, keys[victim], victim), GW_OK);
        assert_int_equal(gw_map_get(map, keys[victim]), victim);
        free(map);
    }
}

static void map_put__refuses_when_full_but_replaces(void **state)
{
    (void)state;
    struct gw_map *map = map_open(2);
    assert_int_equal(gw_map_put(map, 10, 1), GW_OK);
    assert_int_equal(gw_map_put(map, 20, 2), GW_OK);
    assert_int_equal(gw_map_put(map, 30, 3), GW_ERR_NO_ROOM);
    assert_int_equal(gw_map_get(map, 30), GW_MAP_NONE);
    assert_int_equal(gw_map_put(map, 20, 4), GW_OK);
    assert_int_equal(gw_map_get(map, 20), 4);
    gw_map_remove(map, 99);
    assert_int_equal(map->count, 2);
    free(map);
}

static void map_put__refuses_everything_without_room(void **state)
{
    (void)state;
    struct gw_map *map = map_open(0);
    assert_int_equal(gw_map_put(map, 1, 1), GW_ERR_NO_ROOM);
    assert_int_equal(gw_map_get(map, 1), GW_MAP_NONE);
    gw_map_remove(map, 1);
    free(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(map_put__agrees_with_a_list),
        cmocka_unit_test(map_remove__shifts_back_across_the_end),
        cmocka_unit_test(map_put__refuses_when_full_but_replaces),
        cmocka_unit_test(map_put__refuses_everything_without_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
