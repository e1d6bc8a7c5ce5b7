/*
 * A switch that drops by worth, under overload: who loses what, and when, of the classes that share
 * a port and of the ports that share a buffer.
 */
#include "support.h"

#include "pool_fixture.h"
#include "switch_fixture.h"

#include "base/prng.h"

enum {
    PORTS = 4, /* destination d is behind port d */
    PKTS = 4096,
    SIZE = 1000,
    CAPACITY = 400 * SIZE,
    FRONT = GW_CLASS_DATA_MAX,
    BEHIND = FRONT - 1,
    ROUNDS = 200,
    OVERLOAD = 8, /* packets that come while one leaves */
};

static const uint16_t leaves[] = {0, 1, 2, 3};

struct fixture {
    struct gw_switch *sw;
    struct gw_node *node;
    struct gw_pkt_pool pool;
};

static void fixture_open(struct fixture *f, const struct gw_shared_buffer *shared)
{
    struct gw_switch_cfg cfg = gw_test_switch_cfg(PORTS, "dlcp", &f->pool);
    cfg.capacity = gw_test_capacity(CAPACITY);
    cfg.routes = gw_test_routes(leaves, PORTS);
    cfg.shared = *shared;
    gw_test_pool_open(&f->pool, NULL, PKTS, 0);
    f->sw = gw_test_switch_open(&cfg);
    f->node = gw_switch_node(f->sw);
}

static void fixture_close(struct fixture *f)
{
    gw_test_switch_close(f->sw, PORTS, &f->pool);
}

static void feed(struct fixture *f, uint32_t dst, uint8_t class, enum gw_ecn ecn)
{
    struct gw_pkt *pkt = gw_pkt_claim(&f->pool);
    assert_non_null(pkt);
    *pkt = (struct gw_pkt){
        .q = {.size = SIZE, .class = class & 7, .ecn = ecn & 3, .kind = GW_PKT_DATA},
        .dst = dst,
        .buf = GW_BUF_NONE,
    };
    gw_node_input(f->node, PORTS - 1, &pkt, 1, 0);
    f->node->ready_count = 0;
}

static bool pull(struct fixture *f, uint16_t port)
{
    struct gw_pkt *pkt;
    if ((gw_node_output(f->node, port, &pkt, 1, 0) & ~GW_OUTPUT_MORE) == 0)
        return false;
    gw_pkt_release(&f->pool, pkt);
    return true;
}

static struct gw_class_losses losses(const struct fixture *f, uint32_t class)
{
    return gw_switch_port_stats(f->sw, 0).losses[class];
}

/*
 * Two classes, each four times as much as the port sends and half of it unimportant. The front
 * class loses first, since its queue is the shorter one; what both lose is unimportant, until the
 * port is full. From then on important packets are lost for lack of room.
 */
static void switch_dlcp__loses_the_unimportant_of_the_front_first(void **state)
{
    (void)state;
    struct fixture f;
    uint32_t first[GW_CLASSES] = {0}, full = 0;
    fixture_open(&f, &(struct gw_shared_buffer){.bytes = 0});
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        for (uint32_t i = 0; i < OVERLOAD; i++) {
            bool fits = gw_switch_backlog(f.sw, 0) + SIZE <= CAPACITY;
            feed(&f, 0, i % 2 ? FRONT : BEHIND, i / 2 % 2 ? GW_ECN_ECT0 : GW_ECN_NOT_ECT);
            full = full || fits ? full : round;
            for (uint32_t class = BEHIND; class <= FRONT; class ++) {
                struct gw_class_losses lost = losses(&f, class);
                first[class] = first[class] || !lost.drops ? first[class] : round;
                if (full)
                    continue;
                assert_int_equal(lost.unimportant, lost.drops);
                assert_int_equal(lost.shed, lost.drops);
            }
        }
        pull(&f, 0);
    }
    assert_true(first[FRONT] > 0 && first[FRONT] < first[BEHIND]);
    assert_true(full > 2 * first[BEHIND]);
    for (uint32_t class = BEHIND; class <= FRONT; class ++) {
        struct gw_class_losses lost = losses(&f, class);
        assert_true(lost.shed > 50 && lost.shed <= lost.unimportant);
        assert_true(lost.drops > lost.unimportant + 50);
    }
    struct gw_port_stats stats = gw_switch_port_stats(f.sw, 0);
    assert_int_equal(stats.losses[FRONT].drops + stats.losses[BEHIND].drops, stats.drops);
    assert_int_equal(stats.control_drops, 0);
    fixture_close(&f);
}

/* A packet that is forgotten with its port is lost in its class, and not for its worth. */
static void switch_dlcp_close_port__counts_what_it_drops(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, &(struct gw_shared_buffer){.bytes = 0});
    feed(&f, 0, 2, GW_ECN_NOT_ECT);
    feed(&f, 0, 2, GW_ECN_ECT0);
    feed(&f, 0, GW_CLASS_CONTROL, GW_ECN_NOT_ECT);
    gw_switch_close_port(f.sw, 0, 0);
    struct gw_class_losses data = losses(&f, 2), control = losses(&f, GW_CLASS_CONTROL);
    assert_true(data.drops == 2 && data.unimportant == 1 && data.shed == 0);
    assert_true(control.drops == 1 && control.shed == 0);
    assert_int_equal(gw_switch_port_stats(f.sw, 0).control_drops, 1);
    fixture_close(&f);
}

/* How much of a class one port takes while it sends nothing. */
static uint32_t fill(struct fixture *f, uint32_t dst, uint8_t class, enum gw_ecn ecn)
{
    uint32_t before = gw_switch_backlog(f->sw, (uint16_t)dst);
    for (uint32_t i = 0; i < 300; i++)
        feed(f, dst, class, ecn);
    return gw_switch_backlog(f->sw, (uint16_t)dst) - before;
}

/*
 * 120 packets for all. With alpha 1 a port that is alone holds half, and the next one a half of
 * what it leaves. With another alpha for important packets it may then hold more, and so may
 * control.
 */
static void switch_dlcp_shared__has_more_for_the_important(void **state)
{
    const struct gw_shared_buffer plain = {.bytes = 120 * SIZE, .alpha = GW_Q16_ONE};
    const struct gw_shared_buffer important = {
        .bytes = 120 * SIZE, .alpha = GW_Q16_ONE, .alpha_important = 5 * GW_Q16_ONE};
    (void)state;
    struct fixture f;
    fixture_open(&f, &plain);
    assert_int_equal(fill(&f, 0, FRONT, GW_ECN_ECT0), 60 * SIZE);
    assert_int_equal(fill(&f, 0, GW_CLASS_CONTROL, GW_ECN_NOT_ECT), 0);
    assert_int_equal(fill(&f, 1, FRONT, GW_ECN_ECT0), 30 * SIZE);
    fixture_close(&f);

    fixture_open(&f, &important);
    assert_int_equal(fill(&f, 0, 0, GW_ECN_NOT_ECT), 60 * SIZE); /* before its threshold, 128 KB */
    assert_int_equal(fill(&f, 0, 0, GW_ECN_ECT0), 40 * SIZE);    /* 100 = 5 (120 - 100) */
    assert_int_equal(fill(&f, 0, 1, GW_ECN_NOT_ECT), 0);
    assert_int_equal(losses(&f, 1).shed, 0); /* there was no room for it */
    assert_int_equal(fill(&f, 0, GW_CLASS_CONTROL, GW_ECN_NOT_ECT), 0);
    assert_true(pull(&f, 0));
    assert_int_equal(fill(&f, 0, GW_CLASS_CONTROL, GW_ECN_NOT_ECT), SIZE);
    fixture_close(&f);
}

/* Whatever comes and goes, the ports together stay within the buffer, and each within its part. */
static void switch_dlcp_shared__is_never_exceeded(void **state)
{
    const struct gw_shared_buffer shared = {
        .bytes = 90 * SIZE + 7, .alpha = GW_Q16_ONE / 2, .alpha_important = 4 * GW_Q16_ONE};
    (void)state;
    struct fixture f;
    struct gw_prng prng = gw_prng_derive(31, 0);
    uint64_t largest = 0;
    fixture_open(&f, &shared);
    for (uint32_t step = 0; step < 20000; step++) {
        if (gw_prng_below(&prng, 8) < (step / 500 % 2 ? 3u : 6u)) {
            uint32_t dst = gw_prng_below(&prng, PORTS - 1);
            uint64_t held = gw_switch_backlog(f.sw, (uint16_t)dst), used = 0, after = 0;
            for (uint16_t port = 0; port < PORTS; port++)
                used += gw_switch_backlog(f.sw, port);
            enum gw_ecn ecn = gw_prng_below(&prng, 2) ? GW_ECN_ECT1 : GW_ECN_NOT_ECT;
            feed(&f, dst, (uint8_t)gw_prng_below(&prng, GW_CLASS_CONTROL), ecn);
            for (uint16_t port = 0; port < PORTS; port++)
                after += gw_switch_backlog(f.sw, port);
            assert_true(after <= shared.bytes);
            if (after > used && ecn == GW_ECN_NOT_ECT)
                assert_true(held + SIZE <= (shared.bytes - used) / 2);
            largest = after > largest ? after : largest;
        } else {
            pull(&f, (uint16_t)gw_prng_below(&prng, PORTS - 1));
        }
    }
    assert_true(largest > shared.bytes / 4 * 3);
    for (uint16_t port = 0; port < PORTS; port++)
        while (pull(&f, port))
            ;
    assert_int_equal(fill(&f, 0, 0, GW_ECN_NOT_ECT), 30 * SIZE); /* all is free again */
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(switch_dlcp__loses_the_unimportant_of_the_front_first),
        cmocka_unit_test(switch_dlcp_close_port__counts_what_it_drops),
        cmocka_unit_test(switch_dlcp_shared__has_more_for_the_important),
        cmocka_unit_test(switch_dlcp_shared__is_never_exceeded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
