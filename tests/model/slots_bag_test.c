/*
 * All-reduce in slots is exact in any disorder: packets of a job lie in a bag, out of which any one
 * comes next, any number of times or never, so that packets of long past uses of a slot come back
 * (SwitchML, section 3.5, and what it takes from the order of packets).
 */
#include "slots_model.h"

#include "pool_fixture.h"
#include "support.h"

#include "base/prng.h"

enum {
    BAG_MAX = 128,
    STEPS_MAX = 400000,
};

/* Every packet of a job is in the bag, or at its destination. */
struct bag {
    struct gw_slots_model job;
    struct gw_prng prng;
    struct gw_pkt_pool pool;
    struct gw_buf_pool bufs;
    struct gw_slots *slots;
    struct gw_pkt *pkts[BAG_MAX];
    uint32_t count;
    gw_time now;
};

/* Takes any packet out. */
static struct gw_pkt *bag_take(struct bag *bag)
{
    uint32_t at = gw_prng_below(&bag->prng, bag->count);
    struct gw_pkt *pkt = bag->pkts[at];
    bag->pkts[at] = bag->pkts[--bag->count];
    return pkt;
}

/* Puts a packet in; another one is lost when the bag is full. */
static void bag_put(struct bag *bag, struct gw_pkt *pkt)
{
    if (bag->count == BAG_MAX)
        gw_pkt_release(&bag->pool, bag_take(bag));
    bag->pkts[bag->count++] = pkt;
}

static struct gw_pkt *bag_copy(struct bag *bag, const struct gw_pkt *pkt)
{
    struct gw_pkt *copy = gw_pkt_claim(&bag->pool);
    assert_non_null(copy);
    *copy = *pkt;
    gw_buf_share(&bag->bufs, copy->buf);
    return copy;
}

static void bag_deliver(struct bag *bag, struct gw_pkt *pkt)
{
    const uint32_t *dsts;
    if (pkt->q.kind == GW_PKT_PARAM) {
        gw_node_input(gw_endpoint_node(bag->job.endpoints[pkt->dst]), 0, &pkt, 1, bag->now);
        return;
    }
    uint32_t count = gw_slots_gradient(bag->slots, pkt, &dsts);
    for (uint32_t i = 0; i < count; i++) {
        struct gw_pkt *result = i + 1 < count ? bag_copy(bag, pkt) : pkt;
        result->dst = dsts[i];
        bag_put(bag, result);
    }
}

static void bag_step(struct bag *bag)
{
    uint32_t what = gw_prng_below(&bag->prng, 16);
    uint32_t rank = gw_prng_below(&bag->prng, bag->job.world);
    struct gw_node *node = gw_endpoint_node(bag->job.endpoints[rank]);
    struct gw_pkt *pkt;
    if (what < 6) {
        node->ready_count = 0;
        if (gw_node_output(node, 0, &pkt, 1, bag->now) & ~GW_OUTPUT_MORE)
            bag_put(bag, pkt);
    } else if (what < 15 && bag->count) {
        pkt = bag_take(bag);
        if (what < 12) /* it will come again */
            bag_put(bag, bag_copy(bag, pkt));
        if (what < 14)
            bag_deliver(bag, pkt);
        else
            gw_pkt_release(&bag->pool, pkt);
    } else {
        bag->now += GW_SLOTS_MODEL_TIMEOUT / 16;
        gw_node_expire(node, bag->now);
    }
}

static void bag_poll(struct bag *bag)
{
    struct gw_event event;
    for (uint32_t rank = 0; rank < bag->job.world; rank++)
        while (gw_endpoint_poll(bag->job.endpoints[rank], &event, 1))
            gw_slots_model_event(&bag->job, rank, &event);
}

static void bag_run(uint64_t seed, bool overflows, struct gw_slots_stats *seen)
{
    struct bag bag = {.job = gw_slots_model_draw(seed, 0), .prng = gw_prng_derive(seed, 99)};
    gw_test_pool_open(&bag.pool, &bag.bufs, GW_SLOTS_MODEL_PKTS, 4 * GW_SLOTS_MODEL_VALUES);
    bag.slots = gw_slots_model_open_stage(&bag.pool);
    bag.job.overflows = overflows;
    for (uint32_t rank = 0; rank < bag.job.world; rank++) {
        struct gw_endpoint_cfg cfg = gw_slots_model_endpoint_cfg(rank);
        cfg.pool = &bag.pool;
        bag.job.endpoints[rank] =
            gw_endpoint_init(gw_slots_model_take(gw_endpoint_size(&cfg)), &cfg);
    }
    gw_slots_model_open(&bag.job);
    gw_slots_model_install(&bag.job, bag.slots);
    for (uint32_t rank = 0; rank < bag.job.world; rank++)
        gw_slots_model_reduce(&bag.job, rank, bag.now);
    for (uint32_t steps = 0; !gw_slots_model_has_ended(&bag.job); steps++) {
        assert_in_range(steps, 0, STEPS_MAX);
        bag_step(&bag);
        bag_poll(&bag);
        gw_slots_model_check_turns(&bag.job);
    }
    gw_slots_model_check_sums(&bag.job);
    gw_slots_model_add_stats(seen, gw_slots_stats(bag.slots));
    while (bag.count)
        gw_pkt_release(&bag.pool, bag_take(&bag));
    gw_slots_remove(bag.slots, bag.job.number);
    gw_test_pool_close(&bag.pool);
    gw_slots_model_free_all();
}

/* Any order, any number of copies, any loss. */
static void bag__sums_are_exact_in_any_disorder(void **state)
{
    (void)state;
    struct gw_slots_stats seen = {0};
    for (uint64_t seed = 1; seed <= 1000; seed++)
        bag_run(seed, false, &seen);
    print_message("held %llu, completed %llu, repeated %llu, duplicates %llu, stale %llu\n",
                  (unsigned long long)seen.held, (unsigned long long)seen.completed,
                  (unsigned long long)seen.repeated, (unsigned long long)seen.duplicates,
                  (unsigned long long)seen.stale);
    /* The rules that this is about were all at work, once for every few sums. */
    assert_true(seen.repeated > seen.completed / 4 && seen.duplicates > seen.completed / 4 &&
                seen.stale > seen.completed / 4);
    assert_int_equal(seen.malformed + seen.foreign + seen.no_buffer, 0);
}

/* What does not fit fails on every replica, and only that. */
static void bag__sums_that_do_not_fit_fail_everywhere(void **state)
{
    (void)state;
    struct gw_slots_stats seen = {0};
    uint32_t runs = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        if (gw_slots_model_draw(seed, 0).counts[1] <= 5)
            continue; /* too short for the large number */
        bag_run(seed, true, &seen);
        runs++;
    }
    assert_in_range(runs, 200, 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bag__sums_are_exact_in_any_disorder),
        cmocka_unit_test(bag__sums_that_do_not_fit_fail_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
