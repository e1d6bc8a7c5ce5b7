/* The heap of timers against a linear search, with times on both sides of the 64-bit wrap. */
#include "support.h"

#include "base/heap.h"
#include "base/prng.h"

enum {
    IDS = 40,
    STEPS = 20000,
    SEEDS = 8,
};

/* Times of a test lie around the wrap: from half an hour before it to half an hour after. */
static const gw_time before_wrap = 0 - 1800 * GW_S;
static const uint32_t spread_s = 3600;

static struct gw_heap *heap_open(uint32_t limit)
{
    struct gw_heap *heap = malloc(sizeof(*heap) + gw_heap_size(limit));
    assert_non_null(heap);
    gw_heap_init(heap, heap + 1, limit);
    return heap;
}

/* Few distinct times, so that equal deadlines are common. */
static gw_time random_time(struct gw_prng *prng)
{
    return gw_time_add(before_wrap, gw_prng_below(prng, spread_s / 100) * 100 * GW_S);
}

/* The id that must come first: the earliest deadline, and of equal ones the lowest id. */
static uint32_t model_first(const gw_time *deadlines)
{
    uint32_t first = 0;
    for (uint32_t id = 1; id < IDS; id++)
        if (gw_deadline_before(deadlines[id], deadlines[first]))
            first = id;
    return first;
}

static void check_against_model(const struct gw_heap *heap, const gw_time *deadlines)
{
    uint32_t first = model_first(deadlines);
    assert_int_equal(gw_heap_next(heap), deadlines[first]);
    if (deadlines[first] != GW_TIME_NEVER)
        assert_int_equal(gw_heap_first(heap), first);
    uint32_t armed = 0;
    for (uint32_t id = 0; id < IDS; id++) {
        assert_int_equal(gw_heap_deadline(heap, id), deadlines[id]);
        armed += deadlines[id] != GW_TIME_NEVER;
    }
    assert_int_equal(heap->count, armed);
}

static void heap_set__agrees_with_a_search(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        print_message("seed %u\n", (unsigned)seed);
        struct gw_prng prng = {.state = seed};
        struct gw_heap *heap = heap_open(IDS);
        gw_time deadlines[IDS];
        for (uint32_t id = 0; id < IDS; id++)
            deadlines[id] = GW_TIME_NEVER;
        for (int step = 0; step < STEPS; step++) {
            uint32_t id = gw_prng_below(&prng, IDS);
            deadlines[id] = gw_prng_below(&prng, 3) ? random_time(&prng) : GW_TIME_NEVER;
            gw_heap_set(heap, id, deadlines[id]);
            check_against_model(heap, deadlines);
        }
        free(heap);
    }
}

static void heap_first__breaks_ties_by_id(void **state)
{
    (void)state;
    struct gw_heap *heap = heap_open(IDS);
    for (uint32_t id = IDS; id-- > 0;)
        gw_heap_set(heap, id, GW_US);
    for (uint32_t id = 0; id < IDS; id++) {
        assert_int_equal(gw_heap_first(heap), id);
        gw_heap_set(heap, id, GW_TIME_NEVER);
    }
    assert_int_equal(gw_heap_next(heap), GW_TIME_NEVER);
    free(heap);
}

static void heap_first__orders_across_the_wrap(void **state)
{
    (void)state;
    struct gw_heap *heap = heap_open(4);
    gw_heap_set(heap, 0, 5);
    gw_heap_set(heap, 1, 0 - GW_S);
    gw_heap_set(heap, 2, 0);
    gw_heap_set(heap, 3, GW_TIME_NEVER - 1);
    static const uint32_t order[] = {1, 3, 2, 0};
    for (size_t i = 0; i < GW_COUNT_OF(order); i++) {
        assert_int_equal(gw_heap_first(heap), order[i]);
        gw_heap_set(heap, order[i], GW_TIME_NEVER);
    }
    free(heap);
}

static void heap_set__never_disarms_and_is_harmless_twice(void **state)
{
    (void)state;
    struct gw_heap *heap = heap_open(2);
    gw_heap_set(heap, 1, GW_TIME_NEVER);
    assert_int_equal(heap->count, 0);
    gw_heap_set(heap, 1, GW_NS);
    gw_heap_set(heap, 1, 2 * GW_NS);
    assert_int_equal(heap->count, 1);
    assert_int_equal(gw_heap_next(heap), 2 * GW_NS);
    gw_heap_set(heap, 1, GW_TIME_NEVER);
    gw_heap_set(heap, 1, GW_TIME_NEVER);
    assert_int_equal(heap->count, 0);
    assert_int_equal(gw_heap_deadline(heap, 1), GW_TIME_NEVER);
    free(heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heap_set__agrees_with_a_search),
        cmocka_unit_test(heap_first__breaks_ties_by_id),
        cmocka_unit_test(heap_first__orders_across_the_wrap),
        cmocka_unit_test(heap_set__never_disarms_and_is_harmless_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
