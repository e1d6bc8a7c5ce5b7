/*
 * The stage of notices: each clause of its contract, the properties of the paper's counter, and
 * random traffic against a model that is a plain list.
 */
#include "notice_fixture.h"

#include "base/prng.h"

enum {
    OWN = -1, /* a port's own threshold */
};

#define RTT  GW_TEST_NOTICE_RTT
#define HOLD (4 * RTT)

static void fixture_open(struct gw_test_notice *f)
{
    struct gw_switch_notice_cfg cfg = gw_test_notice_cfg();
    gw_test_notice_open(f, &cfg);
}

/* Worker `src` of job 7, by a link of its own, to port 3. */
static struct gw_test_burst worker(uint32_t src, uint8_t units)
{
    return (struct gw_test_burst){
        .in = (uint16_t)(src % 3), .out = 3, .src = src, .flow = 7, .job = 7, .units = units};
}

static void expect(const struct gw_test_notice *f, uint16_t port, int packets, uint32_t open)
{
    uint32_t bytes = packets == OWN ? UINT32_MAX : (uint32_t)packets * GW_TEST_NOTICE_PACKET;
    assert_int_equal(f->bytes[port], bytes);
    assert_int_equal(gw_switch_notice_open(f->stage, port), open);
}

/* P1 and P3: every threshold that can be said is applied until the head has passed. */
static void notice_head__restores_every_threshold(void **state)
{
    struct gw_test_notice f;
    (void)state;
    fixture_open(&f);
    for (uint8_t units = 1; units <= GW_NOTICE_UNITS_MAX; units++) {
        struct gw_test_burst burst = worker(1, units);
        gw_test_notice_announce(&f, &burst);
        expect(&f, 3, 5 * units, 1);
        gw_test_notice_head(&f, &burst, 1);
        expect(&f, 3, OWN, 0);
    }
    assert_int_equal(gw_test_notice_stats(&f, 3).heads, GW_NOTICE_UNITS_MAX);
    gw_test_notice_close(&f);
}

/* P2: the port is low until the last of several has begun; the lowest counts, whatever its order.
 */
static void notice_head__last_restores(void **state)
{
    struct gw_test_notice f;
    (void)state;
    fixture_open(&f);
    for (uint32_t src = 0; src < 3; src++) {
        struct gw_test_burst burst = worker(src, (uint8_t)(4 - src));
        gw_test_notice_announce(&f, &burst);
    }
    expect(&f, 3, 10, 3);
    for (uint32_t src = 3; src-- > 0;) {
        struct gw_test_burst burst = worker(src, 1);
        gw_test_notice_head(&f, &burst, 1);
        expect(&f, 3, src ? 20 - 5 * ((int)src - 1) : OWN, src);
    }
    gw_test_notice_close(&f);
}

static void notice_announce__twice_is_once(void **state)
{
    struct gw_test_notice f;
    struct gw_test_burst burst = worker(1, 2);
    (void)state;
    fixture_open(&f);
    gw_test_notice_announce(&f, &burst);
    gw_test_notice_pass(&f, RTT / 2);
    gw_test_notice_announce(&f, &burst);
    expect(&f, 3, 10, 1);
    assert_int_equal(gw_test_notice_stats(&f, 3).repeated, 1);
    gw_test_notice_head(&f, &burst, 1);
    expect(&f, 3, OWN, 0);
    gw_test_notice_close(&f);
}

/* A lost head, and a crash: `hold` after the first notice all is as before. */
static void notice_announce__ends_with_hold(void **state)
{
    struct gw_test_notice f;
    struct gw_test_burst burst = worker(1, 2);
    (void)state;
    fixture_open(&f);
    gw_test_notice_announce(&f, &burst);
    gw_test_notice_pass(&f, HOLD - 1);
    gw_test_notice_announce(&f, &burst);
    expect(&f, 3, 10, 1);
    gw_test_notice_pass(&f, 1);
    expect(&f, 3, OWN, 0);
    assert_int_equal(gw_switch_notice_deadline(f.stage), GW_TIME_NEVER);
    struct gw_switch_notice_stats stats = gw_test_notice_stats(&f, 3);
    assert_int_equal(stats.recoveries, 1);
    assert_int_equal(stats.lowered, HOLD);
    gw_test_notice_close(&f);
}

/* A round trip is measured: what is open already gets the new time, too. */
static void notice_set_hold__is_for_all(void **state)
{
    struct gw_test_notice f;
    struct gw_test_burst burst = worker(1, 2), other = worker(2, 2);
    (void)state;
    fixture_open(&f);
    gw_test_notice_announce(&f, &burst);
    gw_switch_notice_set_hold(f.stage, 2 * HOLD, 8 * HOLD, f.now);
    gw_test_notice_pass(&f, HOLD);
    expect(&f, 3, 10, 1);
    gw_test_notice_announce(&f, &other);
    gw_test_notice_pass(&f, HOLD);
    expect(&f, 3, 10, 1);
    gw_switch_notice_set_hold(f.stage, HOLD, 4 * HOLD, f.now);
    assert_int_equal(gw_switch_notice_open(f.stage, 3), 0);
    assert_int_equal(gw_test_notice_stats(&f, 3).recoveries, 2);
    gw_test_notice_close(&f);
}

/* A share of 0: the bursts are seen, and no room is made. */
static void notice_announce__without_a_share(void **state)
{
    struct gw_test_notice f;
    struct gw_switch_notice_cfg cfg = gw_test_notice_cfg();
    struct gw_test_burst burst = worker(1, 2);
    (void)state;
    cfg.share = 0;
    gw_test_notice_open(&f, &cfg);
    gw_test_notice_announce(&f, &burst);
    expect(&f, 3, OWN, 0);
    assert_int_equal(gw_test_notice_stats(&f, 3).refused, 1);
    gw_test_notice_close(&f);
}

static void notice_announce__moves_to_another_port(void **state)
{
    struct gw_test_notice f;
    struct gw_test_burst burst = worker(1, 2);
    (void)state;
    fixture_open(&f);
    gw_test_notice_announce(&f, &burst);
    burst.out = 2;
    gw_test_notice_announce(&f, &burst);
    expect(&f, 3, OWN, 0);
    expect(&f, 2, 10, 1);
    assert_int_equal(gw_test_notice_stats(&f, 3).moved, 1);
    /* The head may go elsewhere again: its burst does not come by that port. */
    burst.out = 3;
    gw_test_notice_head(&f, &burst, 1);
    expect(&f, 2, OWN, 0);
    gw_test_notice_close(&f);
}

static void notice_announce__ignores_answers_and_bleached(void **state)
{
    struct gw_test_notice f;
    struct gw_test_burst burst = worker(1, 0);
    struct gw_switch_hop hop = {.in = 0, .out = 3};
    (void)state;
    fixture_open(&f);
    gw_test_notice_announce(&f, &burst);
    struct gw_pkt pkt = gw_test_notice_pkt(&burst, GW_PKT_NOTICE);
    pkt.notice.units = 3;
    pkt.notice.is_answer = true;
    gw_switch_notice_announce(f.stage, &hop, &pkt, f.now);
    pkt.notice.is_answer = false;
    pkt.notice.units = GW_NOTICE_UNITS_MAX + 1;
    gw_switch_notice_announce(f.stage, &hop, &pkt, f.now);
    gw_test_notice_settle(&f);
    expect(&f, 3, OWN, 0);
    assert_int_equal(gw_test_notice_stats(&f, 3).notices, 0);
    gw_test_notice_close(&f);
}

static void notice_announce__keeps_the_floor(void **state)
{
    struct gw_test_notice f;
    struct gw_test_burst burst = worker(1, 1);
    struct gw_switch_notice_cfg cfg = gw_test_notice_cfg();
    (void)state;
    cfg.floor = 12;
    gw_test_notice_open(&f, &cfg);
    gw_test_notice_announce(&f, &burst);
    expect(&f, 3, 12, 1);
    burst.units = 3;
    burst.src = 2;
    gw_test_notice_announce(&f, &burst);
    expect(&f, 3, 12, 2);
    gw_test_notice_close(&f);
}

/* The head of a sum stands for several workers behind its link. */
static void notice_head__of_a_sum(void **state)
{
    struct gw_test_notice f;
    struct gw_test_burst burst = worker(15, 2), other = worker(18, 4);
    (void)state;
    other.flow = other.job = 8;
    fixture_open(&f);
    gw_test_notice_announce(&f, &other);
    for (uint32_t src = 0; src < 18; src += 3) {
        struct gw_test_burst one = worker(src, 2);
        gw_test_notice_announce(&f, &one);
    }
    gw_test_notice_head(&f, &burst, 4);
    expect(&f, 3, 10, 3);
    gw_test_notice_head(&f, &burst, 2);
    expect(&f, 3, 20, 1);
    /* More heads than announcements: the count does not go below zero, nor to other jobs. */
    gw_test_notice_head(&f, &burst, GW_SWITCH_NOTICE_ALL);
    expect(&f, 3, 20, 1);
    assert_int_equal(gw_test_notice_stats(&f, 3).heads, 6);
    gw_test_notice_close(&f);
}

/* It stands for those behind its link: 0, 3 and 6, but not 1. */
static void notice_head__of_a_sum_by_its_link(void **state)
{
    struct gw_test_notice f;
    struct gw_test_burst burst = worker(6, 2);
    (void)state;
    fixture_open(&f);
    for (uint32_t src = 0; src < 7; src += src % 3 ? 2 : 1) {
        struct gw_test_burst one = worker(src, 2);
        gw_test_notice_announce(&f, &one);
    }
    uint32_t open = gw_switch_notice_open(f.stage, 3);
    gw_test_notice_head(&f, &burst, GW_SWITCH_NOTICE_ALL);
    expect(&f, 3, 10, open - 3);
    gw_test_notice_close(&f);
}

static void notice_close__drops_what_was_announced(void **state)
{
    struct gw_test_notice f;
    (void)state;
    fixture_open(&f);
    for (uint32_t src = 0; src < 4; src++) {
        struct gw_test_burst burst = worker(src, 2);
        burst.out = src % 2 ? 3 : 2;
        gw_test_notice_announce(&f, &burst);
    }
    gw_switch_notice_close(f.stage, 3, f.now);
    gw_test_notice_settle(&f);
    expect(&f, 3, OWN, 0);
    expect(&f, 2, 10, 2);
    assert_int_equal(gw_test_notice_stats(&f, 3).dropped, 2);
    gw_test_notice_close(&f);
}

/* Without room of its own an announcement is honoured until `hold` is over, and asks for as little
 * as any of those. */
static void notice_announce__is_honoured_without_room(void **state)
{
    struct gw_test_notice f;
    struct gw_switch_notice_cfg cfg = gw_test_notice_cfg();
    (void)state;
    cfg.announcements_max = 2;
    gw_test_notice_open(&f, &cfg);
    for (uint32_t src = 0; src < 9; src += 3) {
        struct gw_test_burst burst = worker(src, (uint8_t)(6 - src / 3));
        gw_test_notice_announce(&f, &burst);
    }
    expect(&f, 3, 20, 3);
    for (uint32_t src = 0; src < 9; src += 3) {
        struct gw_test_burst burst = worker(src, 1);
        gw_test_notice_head(&f, &burst, 1);
    }
    expect(&f, 3, 20, 1);
    gw_test_notice_pass(&f, HOLD / 2);
    struct gw_test_burst burst = worker(9, 9), more[2] = {worker(3, 9), worker(6, 9)};
    gw_test_notice_announce(&f, &more[0]);
    gw_test_notice_announce(&f, &more[1]);
    gw_test_notice_announce(&f, &burst);
    expect(&f, 3, 20, 3);
    gw_test_notice_head(&f, &burst, GW_SWITCH_NOTICE_ALL);
    gw_test_notice_pass(&f, HOLD - 1);
    expect(&f, 3, 20, 1);
    gw_test_notice_pass(&f, 1);
    expect(&f, 3, OWN, 0);
    assert_int_equal(gw_test_notice_stats(&f, 3).no_room, 2);
    gw_test_notice_close(&f);
}

/* Who fills the table takes nothing from those behind other links: they get up to their part of the
 * places from him, so that their heads close what they announced. */
static void notice_announce__has_room_beside_a_stranger(void **state)
{
    struct gw_test_notice f;
    (void)state;
    fixture_open(&f);
    for (uint32_t i = 0; i < 2 * f.cfg.announcements_max; i++) {
        struct gw_test_burst burst = worker(1 + 3 * i, 15);
        burst.flow = burst.job = 100 + i % 8;
        burst.out = 2;
        gw_test_notice_announce(&f, &burst);
    }
    uint64_t no_room = gw_test_notice_stats(&f, 2).no_room;
    assert_true(no_room > 0);
    for (uint32_t src = 0; src < f.cfg.announcements_max; src++) {
        struct gw_test_burst burst = worker(3 * src, 2);
        gw_test_notice_announce(&f, &burst);
    }
    uint64_t dropped = gw_test_notice_stats(&f, 2).dropped;
    assert_true(dropped >= f.cfg.announcements_max / 2 - 1);
    assert_true(dropped <= f.cfg.announcements_max / 2);
    struct gw_test_burst late = worker(2, 2);
    gw_test_notice_announce(&f, &late);
    assert_int_equal(gw_switch_notice_open(f.stage, 3), dropped + 1 + 1); /* and a rest */
    gw_test_notice_head(&f, &late, 1);
    expect(&f, 3, 10, (uint32_t)dropped + 1);
    gw_test_notice_close(&f);
}

/* The model: bursts in the order of their notices. All are honoured, and each finds room. */

enum {
    MODEL_STEPS = 30000,
    MODEL_MAX = 64,
};

struct model {
    struct gw_test_burst bursts[MODEL_MAX];
    gw_time opened[MODEL_MAX];
    uint32_t count;
};

static void model_remove(struct model *model, uint32_t at)
{
    model->count--;
    for (; at < model->count; at++) {
        model->bursts[at] = model->bursts[at + 1];
        model->opened[at] = model->opened[at + 1];
    }
}

static uint32_t model_find(const struct model *model, const struct gw_test_burst *burst)
{
    uint32_t at = 0;
    while (at < model->count &&
           (model->bursts[at].src != burst->src || model->bursts[at].flow != burst->flow))
        at++;
    return at;
}

static void model_announce(struct model *model, const struct gw_test_burst *burst, gw_time now)
{
    uint32_t at = model_find(model, burst);
    if (at < model->count && model->bursts[at].out == burst->out)
        return;
    if (at < model->count)
        model_remove(model, at);
    assert_true(model->count < MODEL_MAX);
    model->bursts[model->count] = *burst;
    model->opened[model->count++] = now;
}

static void model_head(struct model *model, const struct gw_test_burst *burst, uint32_t workers)
{
    uint32_t own = model_find(model, burst);
    uint32_t left = own < model->count ? workers - 1 : workers;
    if (own < model->count)
        model_remove(model, own);
    for (uint32_t at = 0; workers > 1 && at < model->count && left;) {
        const struct gw_test_burst *other = &model->bursts[at];
        bool is_meant =
            other->out == burst->out && other->job == burst->flow && other->in == burst->in;
        if (is_meant)
            model_remove(model, at);
        left -= is_meant;
        at += !is_meant;
    }
}

static void model_expire(struct model *model, gw_time now)
{
    while (model->count && now - model->opened[0] >= HOLD)
        model_remove(model, 0);
}

static void model_compare(const struct model *model, const struct gw_test_notice *f)
{
    for (uint16_t port = 0; port < GW_TEST_NOTICE_PORTS; port++) {
        uint32_t open = 0, units = GW_NOTICE_UNITS_MAX + 1;
        for (uint32_t i = 0; i < model->count; i++) {
            if (model->bursts[i].out != port)
                continue;
            open++;
            units = model->bursts[i].units < units ? model->bursts[i].units : units;
        }
        expect(f, port, open ? 5 * (int)units : OWN, open);
    }
}

/* A few senders of a few jobs: they announce, repeat, move, begin alone or in sums, or fall silent.
 * A sender's link and job follow from its number. */
static struct gw_test_burst random_burst(struct gw_prng *prng)
{
    uint32_t src = gw_prng_below(prng, 24);
    return (struct gw_test_burst){
        .in = (uint16_t)(src % 3),
        .out = (uint16_t)(gw_prng_below(prng, 8) ? src % 4 : gw_prng_below(prng, 4)),
        .src = src,
        .flow = src / 6,
        .job = src / 6,
        .units = (uint8_t)(1 + gw_prng_below(prng, GW_NOTICE_UNITS_MAX)),
    };
}

static void notice__is_as_the_model(void **state)
{
    struct gw_test_notice f;
    struct gw_switch_notice_cfg cfg = gw_test_notice_cfg();
    struct model model = {.count = 0};
    struct gw_prng prng = gw_prng_derive(15, 1);
    (void)state;
    cfg.share = GW_Q16_ONE;
    cfg.save = INT64_MAX / 8;
    cfg.jobs_max = 12;
    gw_test_notice_open(&f, &cfg);
    for (uint32_t step = 0; step < MODEL_STEPS; step++) {
        struct gw_test_burst burst = random_burst(&prng);
        uint32_t what = gw_prng_below(&prng, 16);
        uint32_t some = 2 + gw_prng_below(&prng, 4);
        if (what < 8) {
            gw_test_notice_announce(&f, &burst);
            model_announce(&model, &burst, f.now);
        } else if (what < 12) {
            gw_test_notice_head(&f, &burst, 1);
            model_head(&model, &burst, 1);
        } else if (what < 15) {
            uint32_t workers = what == 14 ? GW_SWITCH_NOTICE_ALL : some;
            gw_test_notice_head(&f, &burst, workers);
            model_head(&model, &burst, workers);
        } else {
            gw_test_notice_pass(&f, gw_prng_below(&prng, 3) * HOLD / 4 + 1);
        }
        model_expire(&model, f.now);
        model_compare(&model, &f);
    }
    struct gw_switch_notice_stats total = gw_switch_notice_total(f.stage, f.now);
    assert_int_equal(total.refused + total.no_room, 0);
    assert_true(total.moved > 100 && total.recoveries > 1000 && total.repeated > 1000);
    assert_true(total.heads > 1000);
    gw_test_notice_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notice_head__restores_every_threshold),
        cmocka_unit_test(notice_head__last_restores),
        cmocka_unit_test(notice_announce__twice_is_once),
        cmocka_unit_test(notice_announce__ends_with_hold),
        cmocka_unit_test(notice_set_hold__is_for_all),
        cmocka_unit_test(notice_announce__moves_to_another_port),
        cmocka_unit_test(notice_announce__ignores_answers_and_bleached),
        cmocka_unit_test(notice_announce__keeps_the_floor),
        cmocka_unit_test(notice_head__of_a_sum),
        cmocka_unit_test(notice_head__of_a_sum_by_its_link),
        cmocka_unit_test(notice_close__drops_what_was_announced),
        cmocka_unit_test(notice_announce__is_honoured_without_room),
        cmocka_unit_test(notice_announce__has_room_beside_a_stranger),
        cmocka_unit_test(notice_announce__without_a_share),
        cmocka_unit_test(notice__is_as_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
