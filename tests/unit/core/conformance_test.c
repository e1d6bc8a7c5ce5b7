/*
 * What every pluggable algorithm must keep, whoever wrote it: loops over each registry, so that a
 * new file is tested when its line is added. Each algorithm runs with its defaults, with every
 * preset, and with every switch and choice of its options turned once.
 */
#include "support.h"

#include <stdio.h>

#include "base/prng.h"
#include "core/cc/cc.h"
#include "core/finish/finish.h"
#include "core/grant/grant.h"
#include "core/lb/lb.h"
#include "core/loss/loss.h"
#include "core/qdisc/qdisc.h"
#include "core/urgency/urgency.h"
#include "workload/schedule/schedule.h"

enum {
    SEED = 20240817,
    STEPS = 3000,
    CANARY = 0xA5,
};

/* More than any algorithm may ask for, so that there is room behind it for a canary. */
#define STATE_MAX (GW_QDISC_STATE_MAX + 64)

/* Private memory, zeroed up to the size that the algorithm asks for. */
struct memory {
    _Alignas(16) unsigned char bytes[STATE_MAX];
};

static struct memory memory_make(const struct gw_algo *algo)
{
    struct memory memory = {{0}};
    memset(memory.bytes + algo->state_size, CANARY, STATE_MAX - algo->state_size);
    return memory;
}

static void memory_check(const struct memory *memory, const struct gw_algo *algo)
{
    for (size_t i = algo->state_size; i < STATE_MAX; i++)
        assert_int_equal(memory->bytes[i], CANARY);
}

/* ---- Variants of options. ---- */

typedef void (*variant_check)(const struct gw_algo *algo, const union gw_algo_cfg *cfg,
                              const char *what);

static void variant_set(const struct gw_algo *algo, const char *name, const char *value,
                        variant_check check)
{
    union gw_algo_cfg cfg;
    char what[128];
    gw_algo_defaults(algo, &cfg);
    assert_int_equal(gw_algo_set(algo, &cfg, name, value), 0);
    snprintf(what, sizeof(what), "%s %s=%s", algo->name, name, value);
    check(algo, &cfg, what);
}

static void each_variant(const struct gw_algo *algo, variant_check check)
{
    union gw_algo_cfg cfg;
    gw_algo_defaults(algo, &cfg);
    check(algo, &cfg, algo->name);
    for (uint32_t i = 0; i < algo->preset_count; i++) {
        gw_algo_defaults(algo, &cfg);
        assert_int_equal(gw_algo_preset(algo, &cfg, algo->presets[i].name), 0);
        check(algo, &cfg, algo->presets[i].name);
    }
    for (uint32_t i = 0; i < algo->param_count; i++) {
        const struct gw_param *param = &algo->params[i];
        if (param->type == GW_PARAM_BOOL) {
            variant_set(algo, param->name, "yes", check);
            variant_set(algo, param->name, "no", check);
        }
        for (const char *word = param->choices; word && *word;) {
            char value[64];
            size_t length = strcspn(word, "|");
            assert_true(length > 0 && length < sizeof(value));
            memcpy(value, word, length);
            value[length] = '\0';
            variant_set(algo, param->name, value, check);
            word += length + (word[length] == '|');
        }
    }
}

static void each_algo(const struct gw_registry *registry, variant_check check)
{
    assert_true(registry->count > 0);
    for (uint32_t i = 0; i < registry->count; i++)
        each_variant(registry->algos[i], check);
}

/* ---- What an algorithm says of itself. ---- */

static bool is_filled(const char *text)
{
    return text && text[0];
}

static void check_param(const struct gw_algo *algo, const struct gw_param *param)
{
    assert_true(is_filled(param->name));
    assert_int_equal(strspn(param->name, "abcdefghijklmnopqrstuvwxyz0123456789_"),
                     strlen(param->name));
    assert_true(param->offset < algo->cfg_size);
    assert_int_equal(param->choices != NULL, param->type == GW_PARAM_ENUM);
    /* "meaning, unit (source)" */
    assert_true(is_filled(param->help));
    const char *source = strrchr(param->help, '(');
    assert_non_null(source);
    assert_true(source > param->help && source[1] != ')');
    assert_int_equal(param->help[strlen(param->help) - 1], ')');
    for (const struct gw_param *other = algo->params; other < param; other++)
        assert_string_not_equal(other->name, param->name);
}

static void check_self_description(const struct gw_registry *registry, uint32_t state_max)
{
    assert_true(is_filled(registry->kind));
    for (uint32_t i = 0; i < registry->count; i++) {
        const struct gw_algo *algo = registry->algos[i];
        assert_true(is_filled(algo->name) && is_filled(algo->summary) && is_filled(algo->source));
        assert_ptr_equal(gw_registry_find(registry, algo->name), algo);
        assert_true(algo->cfg_size <= GW_ALGO_CFG_MAX);
        assert_true(algo->state_size <= state_max);
        union gw_algo_cfg cfg, again;
        gw_algo_defaults(algo, &cfg);
        for (uint32_t p = 0; p < algo->param_count; p++) {
            check_param(algo, &algo->params[p]);
            /* Each default parses by itself, to the same value. */
            if (algo->params[p].initial)
                assert_int_equal(
                    gw_algo_set(algo, &cfg, algo->params[p].name, algo->params[p].initial), 0);
        }
        gw_algo_defaults(algo, &again);
        assert_memory_equal(&cfg, &again, algo->cfg_size);
        for (uint32_t p = 0; p < algo->preset_count; p++) {
            assert_true(is_filled(algo->presets[p].name) && is_filled(algo->presets[p].help));
            assert_int_equal(gw_algo_preset(algo, &cfg, algo->presets[p].name), 0);
        }
        assert_int_not_equal(gw_algo_preset(algo, &cfg, "no such preset"), 0);
        assert_int_not_equal(gw_algo_set(algo, &cfg, "no such option", "1"), 0);
    }
}

static void conformance_algo__describes_itself(void **state)
{
    (void)state;
    check_self_description(&gw_cc_registry, GW_CC_STATE_MAX);
    check_self_description(&gw_finish_registry, 0);
    check_self_description(&gw_grant_registry, 0);
    check_self_description(&gw_lb_registry, GW_LB_STATE_MAX);
    check_self_description(&gw_loss_registry, GW_LOSS_STATE_MAX);
    check_self_description(&gw_qdisc_registry, GW_QDISC_STATE_MAX);
    check_self_description(&gw_schedule_registry, 0);
    check_self_description(&gw_urgency_registry, 0);
}

/* ---- Paths, from a tiny one to a long one. ---- */

static const struct gw_path PATHS[] = {
    {.brtt = 12 * GW_US,
     .brtt_max = 12 * GW_US,
     .rate_bps = UINT64_C(100000000000),
     .bdp = 150000,
     .mtu = 4096,
     .hdr = 64,
     .hops = 6,
     .trims = true},
    {.brtt = 3 * GW_US,
     .brtt_max = 11453 * GW_NS,
     .rate_bps = UINT64_C(800000000000),
     .bdp = 1145300,
     .mtu = 4096,
     .hdr = 64,
     .hops = 2,
     .trims = false},
    {.brtt = 2 * GW_US,
     .brtt_max = 2 * GW_US,
     .rate_bps = UINT64_C(1000000000),
     .bdp = 250,
     .mtu = 1500,
     .hdr = 64,
     .hops = 2,
     .trims = true},
    {.brtt = 100 * GW_MS,
     .brtt_max = 300 * GW_MS,
     .rate_bps = UINT64_C(100000000000),
     .bdp = 3750000000,
     .mtu = 65535,
     .hdr = 64,
     .hops = 40,
     .trims = false},
    {.brtt = 13 * GW_MS,
     .brtt_max = 13 * GW_MS,
     .rate_bps = GW_RATE_BPS_MIN,
     .bdp = 1,
     .mtu = 1,
     .hdr = 64,
     .hops = 1,
     .trims = true},
};

/* ---- Congestion control. ---- */

/* Same feedback for `count` instances; their windows must stay equal and within bounds. */
static void cc_run(const struct gw_cc_ops *ops, const union gw_algo_cfg *cfg,
                   const struct gw_path *path, struct memory memories[2], uint64_t seed)
{
    struct gw_prng prng = gw_prng_derive(seed, 0);
    struct gw_cc_window windows[2];
    memset(windows, 0xff, sizeof(windows));         /* init sets every field */
    gw_time now = (gw_time)0 - 20 * path->brtt_max; /* wraps on the way */
    for (int i = 0; i < 2; i++)
        windows[i].is_silent = false;
    for (int i = 0; i < 2; i++)
        ops->init(memories[i].bytes, cfg, path, &windows[i], now);
    const uint64_t limit = ops->exceeds_bdp ? UINT32_MAX : 2 * (uint64_t)path->bdp + path->mtu;
    for (int step = 0; step < STEPS; step++) {
        uint32_t kind = gw_prng_below(&prng, 16);
        uint32_t bytes = 1 + gw_prng_below(&prng, kind == 15 ? UINT32_MAX - 1 : path->mtu);
        uint32_t in_flight = gw_prng_below(&prng, kind == 14 ? UINT32_MAX : path->bdp + 1);
        gw_time rtt =
            kind == 13 ? gw_prng_next(&prng) >> 1 : gw_prng_next(&prng) % (4 * path->brtt_max);
        now += gw_prng_below(&prng, 64) ? gw_prng_next(&prng) % (path->brtt_max / 8)
                                        : 100 * path->brtt_max;
        bool ce = gw_prng_below(&prng, 2);
        for (int i = 0; i < 2; i++) {
            if (windows[i].is_silent && !gw_time_before(now, windows[i].silent_until)) {
                windows[i].is_silent = false;
                ops->on_silence_end(memories[i].bytes, cfg, path, in_flight, &windows[i], now);
            }
            if (ops->on_report && kind == 7) {
                ops->on_round(memories[i].bytes, cfg, path, &windows[i], now);
            } else if (ops->on_report && kind % 2) {
                struct gw_cc_report report = {
                    .period = rtt, .sent = in_flight, .received = ce ? bytes : in_flight};
                ops->on_report(memories[i].bytes, cfg, path, &report, &windows[i], now);
            } else if (kind < 12 || kind == 13) {
                struct gw_cc_ack ack = {
                    .bytes = bytes, .in_flight = in_flight, .rtt = rtt, .ce = ce};
                ops->on_ack(memories[i].bytes, cfg, path, &ack, &windows[i], now);
            } else {
                struct gw_cc_loss loss = {.bytes = bytes,
                                          .in_flight = in_flight,
                                          .sent_at = now - rtt,
                                          .trimmed = ce,
                                          .is_timeout = !ce && step % 2};
                ops->on_loss(memories[i].bytes, cfg, path, &loss, &windows[i], now);
            }
        }
        assert_in_range(windows[0].cwnd, 1, limit);
        assert_int_equal(windows[0].cwnd, windows[1].cwnd);
        assert_int_equal(windows[0].pace, windows[1].pace);
        if (windows[0].is_silent)
            assert_true(ops->on_silence_end && gw_time_before(now, windows[0].silent_until));
        if (ops->on_report)
            assert_in_range(windows[0].pace, gw_byte_time_from_bps(path->rate_bps),
                            gw_byte_time_from_bps(GW_RATE_BPS_MIN));
    }
}

static void check_cc(const struct gw_algo *algo, const union gw_algo_cfg *cfg, const char *what)
{
    const struct gw_cc_ops *ops = (const void *)algo;
    (void)what;
    assert_true(!ops->on_report == !ops->on_round);
    assert_true(ops->on_report || !ops->shares_lane);
    for (size_t p = 0; p < GW_COUNT_OF(PATHS); p++) {
        struct memory memories[2] = {memory_make(algo), memory_make(algo)};
        cc_run(ops, cfg, &PATHS[p], memories, SEED + p);
        /* A used state that is zeroed again is a new one. */
        memories[0] = memory_make(algo);
        struct gw_cc_window used, new;
        memories[1] = memory_make(algo);
        ops->init(memories[0].bytes, cfg, &PATHS[p], &used, 0);
        ops->init(memories[0].bytes, cfg, &PATHS[p], &used, 0);
        ops->init(memories[1].bytes, cfg, &PATHS[p], &new, 0);
        assert_memory_equal(memories[0].bytes, memories[1].bytes, STATE_MAX);
        assert_int_equal(used.cwnd, new.cwnd);
        memory_check(&memories[0], algo);
    }
}

/*
 * No window leaves [1 byte, 2 bdp + 1 packet], whatever the feedback; nor 32 bits, where only
 * losses and marks bound it.
 */
static void conformance_cc__keeps_windows_in_bounds(void **state)
{
    (void)state;
    each_algo(&gw_cc_registry, check_cc);
}

/* ---- Grants. ---- */

static void check_grant(const struct gw_algo *algo, const union gw_algo_cfg *cfg, const char *what)
{
    const struct gw_grant_ops *ops = (const void *)algo;
    (void)what;
    for (size_t p = 0; p < GW_COUNT_OF(PATHS); p++) {
        struct gw_grant_plan plan;
        memset(&plan, 0xff, sizeof(plan)); /* all is set */
        ops->plan(cfg, &PATHS[p], &plan);
        assert_in_range(plan.first, 1, 1 + 2 * (uint64_t)PATHS[p].bdp / PATHS[p].mtu);
        assert_in_range(plan.ahead, plan.first, 1 + 4 * (uint64_t)PATHS[p].bdp / PATHS[p].mtu);
        assert_true(plan.pace >= gw_byte_time_from_bps(PATHS[p].rate_bps));
    }
}

/* Every plan lets a flow begin, and grants no faster than the link. */
static void conformance_grant__plans_what_a_link_can_take(void **state)
{
    (void)state;
    each_algo(&gw_grant_registry, check_grant);
}

/* ---- Load balancing. ---- */

/* Entropies that the option `entropies` allows; all 16 bits where there is none. */
static uint32_t entropy_limit(const struct gw_algo *algo, const union gw_algo_cfg *cfg)
{
    for (uint32_t i = 0; i < algo->param_count; i++)
        if (strcmp(algo->params[i].name, "entropies") == 0) {
            uint32_t entropies;
            memcpy(&entropies, cfg->bytes + algo->params[i].offset, sizeof(entropies));
            return entropies;
        }
    return 65536;
}

static void lb_run(const struct gw_algo *algo, const union gw_algo_cfg *cfg,
                   const struct gw_path *path)
{
    const struct gw_lb_ops *ops = (const void *)algo;
    const uint32_t limit = entropy_limit(algo, cfg);
    struct memory memories[2] = {memory_make(algo), memory_make(algo)};
    struct gw_prng prng = gw_prng_derive(SEED, path->bdp);
    gw_time now = (gw_time)0 - 20 * path->brtt; /* wraps on the way */
    for (int i = 0; i < 2; i++)
        ops->init(memories[i].bytes, cfg, path, gw_prng_derive(SEED, 1));
    for (int step = 0; step < STEPS; step++) {
        uint32_t kind = gw_prng_below(&prng, 8);
        struct gw_lb_echo echo = {
            .rtt = gw_prng_next(&prng) % (4 * path->brtt),
            .in_flight = gw_prng_below(&prng, 4) ? gw_prng_below(&prng, path->bdp + 1) : 0,
            .entropy = (uint16_t)gw_prng_next(&prng), /* also ones that were never sent */
            .ce = gw_prng_below(&prng, 2),
        };
        const struct gw_lb_next next = {
            .bytes = 1 + gw_prng_below(&prng, 4 * path->mtu),
            .is_resent = gw_prng_below(&prng, 2),
        };
        uint16_t picked[2] = {0, 0};
        now += gw_prng_next(&prng) % (path->brtt / 8);
        for (int i = 0; i < 2; i++) {
            void *memory = memories[i].bytes;
            if (kind < 4)
                picked[i] = ops->pick(memory, cfg, &next, now);
            else if (kind < 6)
                ops->on_ack(memory, cfg, &echo, now);
            else if (kind == 6)
                ops->on_trim(memory, cfg, &echo, now);
            else
                ops->on_timeout(memory, cfg, now - echo.rtt, now);
        }
        assert_true(picked[0] < limit);
        assert_int_equal(picked[0], picked[1]);
    }
    memory_check(&memories[0], algo);
}

static void check_lb(const struct gw_algo *algo, const union gw_algo_cfg *cfg, const char *what)
{
    (void)what;
    for (size_t p = 0; p < GW_COUNT_OF(PATHS); p++)
        lb_run(algo, cfg, &PATHS[p]);
}

/* Entropies stay below their limit, also with one, an odd number, and all of them. */
static void conformance_lb__keeps_entropies_in_range(void **state)
{
    static const char *const counts[] = {"1", "7", "256", "65535", "65536"};
    (void)state;
    each_algo(&gw_lb_registry, check_lb);
    for (uint32_t i = 0; i < gw_lb_registry.count; i++) {
        const struct gw_algo *algo = gw_lb_registry.algos[i];
        union gw_algo_cfg cfg;
        gw_algo_defaults(algo, &cfg);
        if (entropy_limit(algo, &cfg) == 65536 && algo->param_count == 0)
            continue;
        for (size_t c = 0; c < GW_COUNT_OF(counts); c++)
            variant_set(algo, "entropies", counts[c], check_lb);
    }
}

/* ---- Loss detection. ---- */

/* A packet sent at `sent_at` arrived; what is sent from `now` on must not count as lost by that. */
static void loss_arrive(const struct gw_loss_ops *ops, struct memory *memory,
                        const union gw_algo_cfg *cfg, gw_time sent_at, gw_time now)
{
    if (ops->on_delivery) {
        gw_time lost_before = ops->on_delivery(memory->bytes, cfg, sent_at);
        assert_true(lost_before == GW_TIME_NEVER || !gw_time_before(now, lost_before));
    }
    ops->on_ack(memory->bytes, cfg, sent_at, PATHS[0].brtt);
}

/* How long packets may stay unanswered when a probe, if the algorithm has such, was of no use. */
static gw_time loss_base(const struct gw_loss_ops *ops, const struct memory *memory,
                         const union gw_algo_cfg *cfg, gw_time now)
{
    struct memory copy = *memory;
    gw_time first = ops->period(copy.bytes, cfg);
    if (ops->on_timeout(copy.bytes, cfg, now - first, now) != GW_LOSS_PROBE)
        return first;
    gw_time base = ops->period(copy.bytes, cfg);
    assert_true(first <= base);
    return base;
}

/* Whether periods grow: always, where no option says otherwise. */
static bool backs_off(const struct gw_algo *algo, const union gw_algo_cfg *cfg)
{
    for (uint32_t i = 0; i < algo->param_count; i++)
        if (strcmp(algo->params[i].name, "back_off") == 0)
            return *(const bool *)(cfg->bytes + algo->params[i].offset);
    return true;
}

static void check_loss(const struct gw_algo *algo, const union gw_algo_cfg *cfg, const char *what)
{
    const struct gw_loss_ops *ops = (const void *)algo;
    (void)what;
    assert_int_equal(ops->on_delivery != NULL, ops->on_loss != NULL);
    for (size_t p = 0; p < GW_COUNT_OF(PATHS); p++) {
        struct memory memory = memory_make(algo);
        struct gw_prng prng = gw_prng_derive(SEED, p);
        ops->init(memory.bytes, cfg, &PATHS[p]);
        const gw_time long_ago = (gw_time)0 - 1000 * GW_S;
        for (int i = 0; i < 1000; i++) /* estimates settle */
            loss_arrive(ops, &memory, cfg, long_ago, long_ago);
        const gw_time least = ops->period(memory.bytes, cfg);
        const gw_time base = loss_base(ops, &memory, cfg, long_ago);
        assert_in_range(least, 1, base);
        assert_in_range(base, 1, INT64_MAX / 64);

        /* Every packet is lost: the period grows, never shrinks, and ends at 64 times the base. Or
         * it stays, and in the end nothing but headers leaves, or it is told to stay. */
        gw_time now = (gw_time)0 - 10 * base;
        gw_time last = least;
        enum gw_loss_verdict verdict = GW_LOSS_OLDEST;
        for (int step = 0; step < 20; step++) {
            gw_time sent_at = now;
            now += last;
            verdict = ops->on_timeout(memory.bytes, cfg, sent_at, now);
            bool probes = verdict == GW_LOSS_PROBE;
            gw_time next = ops->period(memory.bytes, cfg);
            if (probes) {
                assert_int_equal(step, 0); /* once, and first */
                assert_int_equal(next, base);
                last = base;
            }
            assert_in_range(next, last, 2 * last);
            assert_true(next <= 64 * base);
            last = next;
        }
        bool stays = verdict == GW_LOSS_ASK || !backs_off(algo, cfg);
        assert_int_equal(last, stays ? base : 64 * base);
        /* A new packet that arrives brings the base back. */
        loss_arrive(ops, &memory, cfg, now, now);
        assert_int_equal(ops->period(memory.bytes, cfg), least);
        assert_int_equal(loss_base(ops, &memory, cfg, now), base);

        for (int step = 0; step < STEPS; step++) {
            now += gw_prng_next(&prng) % (2 * base);
            gw_time sent_at = now - gw_prng_next(&prng) % (4 * base);
            bool believed = ops->on_nack(memory.bytes, cfg);
            assert_int_equal(ops->on_nack(memory.bytes, cfg), believed);
            if (gw_prng_below(&prng, 2))
                loss_arrive(ops, &memory, cfg, sent_at, now);
            else if (ops->on_loss && gw_prng_below(&prng, 4) == 0)
                ops->on_loss(memory.bytes, cfg, now);
            else
                ops->on_timeout(memory.bytes, cfg, sent_at, now);
            assert_in_range(ops->period(memory.bytes, cfg), least, 64 * base);
        }
        memory_check(&memory, algo);
    }
}

static void conformance_loss__backs_off_and_recovers(void **state)
{
    (void)state;
    each_algo(&gw_loss_registry, check_loss);
}

/* ---- Ends of messages. ---- */

static void check_finish(const struct gw_algo *algo, const union gw_algo_cfg *cfg, const char *what)
{
    const struct gw_finish_ops *ops = (const struct gw_finish_ops *)algo;
    struct gw_prng prng = gw_prng_derive(SEED, 0);
    for (int step = 0; step < STEPS; step++) {
        uint32_t total = 1 + gw_prng_below(&prng, step % 2 ? 10 : UINT32_MAX - 1);
        struct gw_finish_sample sample = {.total = total, .arrived = gw_prng_below(&prng, total)};
        sample.lost = gw_prng_below(&prng, total - sample.arrived);
        bool was_enough = ops->is_enough(cfg->bytes, &sample);
        sample.arrived++;
        if (was_enough && !ops->is_enough(cfg->bytes, &sample))
            fail_msg("%s: one more packet of %u is less", what, total);
        sample = (struct gw_finish_sample){.total = total, .arrived = total};
        if (!ops->is_enough(cfg->bytes, &sample))
            fail_msg("%s: all of %u packets are not enough", what, total);
    }
}

static void conformance_finish__is_content_with_all(void **state)
{
    (void)state;
    each_algo(&gw_finish_registry, check_finish);
}

/* Who asks for nothing gets everything. */
static void conformance_finish__has_one_that_wants_all(void **state)
{
    (void)state;
    const struct gw_finish_ops *all =
        (const struct gw_finish_ops *)gw_registry_find(&gw_finish_registry, "all");
    struct gw_finish_sample sample = {.total = 1000, .arrived = 999};
    assert_false(all->is_enough(NULL, &sample));
    sample.lost = 1;
    assert_false(all->is_enough(NULL, &sample));
}

/* ---- Urgency. ---- */

/* A class that data may have, whatever a message is like; it depends on what has left alone. */
static void check_urgency(const struct gw_algo *algo, const union gw_algo_cfg *cfg,
                          const char *what)
{
    const struct gw_urgency_ops *ops = (const struct gw_urgency_ops *)algo;
    struct gw_prng prng = gw_prng_derive(SEED, 0);
    for (int step = 0; step < STEPS; step++) {
        uint64_t bytes = 1 + (gw_prng_next(&prng) >> (gw_prng_next(&prng) % 64));
        struct gw_urgency_sample sample = {
            .bytes = bytes,
            .sent = gw_prng_next(&prng) % bytes,
            .remains = 1 + gw_prng_next(&prng) % bytes,
            .class = (uint8_t)gw_prng_below(&prng, GW_CLASS_DATA_MAX + 1),
        };
        struct gw_urgency urgency = ops->pick(cfg, &sample);
        sample.remains = 1 + gw_prng_next(&prng) % bytes;
        struct gw_urgency other = ops->pick(cfg, &sample);
        if (urgency.class > GW_CLASS_DATA_MAX || other.class != urgency.class)
            fail_msg("%s: classes %u and %u in one train", what, urgency.class, other.class);
    }
}

static void conformance_urgency__gives_a_train_one_class(void **state)
{
    (void)state;
    each_algo(&gw_urgency_registry, check_urgency);
}

/* ---- Queue disciplines. ---- */

enum {
    PACKETS = 512,
    TRIM_SIZE = 64,
    CAPACITY = 100000,
};

static struct gw_pkt packets[PACKETS];

/* One port, with an account of everything that went through it. */
struct port {
    const struct gw_qdisc_ops *ops;
    const union gw_algo_cfg *cfg;
    struct memory memory;
    struct gw_pkt_pool pool;
    struct gw_prng prng;
    struct gw_qdisc_port outside;
    uint64_t in, out, trimmed, dropped; /* bytes */
    uint32_t queued;                    /* packets */
    uint64_t marked;                    /* packets that left with CE and came without */
    uint32_t next_seq;
    uint32_t latest[GW_CLASSES]; /* seq of the latest packet out that came in that class */
};

static uint32_t backlog(const struct port *port)
{
    const struct gw_qdisc_state *base = (const void *)port->memory.bytes;
    return base->backlog;
}

/* A random packet; how it came is kept outside of what a discipline may see. */
static struct gw_pkt *port_claim(struct port *port)
{
    struct gw_pkt *pkt = gw_pkt_claim(&port->pool);
    if (!pkt)
        return NULL;
    struct gw_prng *prng = &port->prng;
    uint8_t class = (uint8_t)gw_prng_below(prng, GW_CLASSES);
    bool control = class == GW_CLASS_CONTROL;
    pkt->q = (struct gw_qpkt){
        .size = control ? TRIM_SIZE : TRIM_SIZE + gw_prng_below(prng, 9000),
        .class = class,
        .ecn = (uint8_t)gw_prng_below(prng, 4),
        .flags = !control && gw_prng_below(prng, 8) ? GW_PKT_TRIMMABLE : 0,
        .kind = control ? GW_PKT_ACK : GW_PKT_DATA,
    };
    pkt->seq = ++port->next_seq;
    pkt->src = pkt->q.ecn;
    pkt->dst = pkt->q.size;
    pkt->flow = pkt->q.class;
    return pkt;
}

/* A packet leaves the account, by whatever way: only CE and trimming may have changed it. */
static void port_leave(struct port *port, struct gw_pkt *pkt)
{
    if (pkt->q.ecn != pkt->src) {
        assert_int_equal(pkt->q.ecn, GW_ECN_CE);
        assert_int_not_equal(pkt->src, GW_ECN_NOT_ECT);
        port->marked++;
    }
    if (pkt->q.flags & GW_PKT_TRIMMED) {
        assert_int_equal(pkt->q.size, TRIM_SIZE);
        assert_int_equal(pkt->q.class, GW_CLASS_CONTROL);
        assert_true(pkt->q.flags & GW_PKT_TRIMMABLE);
    } else {
        assert_int_equal(pkt->q.size, pkt->dst);
        assert_int_equal(pkt->q.class, pkt->flow);
    }
    gw_pkt_release(&port->pool, pkt);
}

static void port_enqueue(struct port *port)
{
    struct gw_pkt *pkt = port_claim(port);
    if (!pkt)
        return;
    struct gw_pkt *victim = NULL;
    uint32_t size = pkt->q.size, before = backlog(port);
    uint64_t pool_free =
        gw_prng_below(&port->prng, 16) ? UINT64_MAX : gw_prng_below(&port->prng, 10000);
    enum gw_qdisc_verdict verdict =
        port->ops->enqueue(port->memory.bytes, port->cfg, &port->outside, pkt, pool_free, &victim);
    uint32_t gone = before + size - backlog(port);
    port->in += size;
    port->queued++;
    assert_true(backlog(port) <= before || backlog(port) - before <= pool_free);
    switch (verdict) {
    case GW_QDISC_QUEUED:
        assert_int_equal(gone, 0);
        break;
    case GW_QDISC_TRIMMED:
        assert_non_null(victim);
        assert_true(victim->q.flags & GW_PKT_TRIMMED);
        assert_int_equal(gone, victim->dst - victim->q.size);
        port->trimmed += gone;
        break;
    case GW_QDISC_EVICTED: /* never for an arrival that is no more urgent, as all are here */
        fail();
        break;
    case GW_QDISC_SHED:
        assert_ptr_equal(victim, pkt);
        assert_int_equal(pkt->q.ecn, GW_ECN_NOT_ECT);
        assert_true(pkt->q.class != GW_CLASS_CONTROL && size <= pool_free);
        __attribute__((fallthrough));
    case GW_QDISC_DROPPED:
        assert_non_null(victim);
        assert_int_equal(gone, victim->q.size);
        port->dropped += gone;
        port->queued--;
        port_leave(port, victim);
        break;
    }
}

static void port_dequeue(struct port *port)
{
    uint32_t before = backlog(port);
    struct gw_pkt *pkt = port->ops->dequeue(port->memory.bytes, port->cfg, &port->outside);
    assert_int_equal(pkt == NULL, before == 0);
    if (!pkt)
        return;
    assert_int_equal(before - backlog(port), pkt->q.size);
    /* First in, first out within a class; a trimmed packet has left its class. */
    if (!(pkt->q.flags & GW_PKT_TRIMMED)) {
        assert_true(pkt->seq > port->latest[pkt->q.class]);
        port->latest[pkt->q.class] = pkt->seq;
    }
    port->out += pkt->q.size;
    port->queued--;
    port_leave(port, pkt);
}

static void check_qdisc(const struct gw_algo *algo, const union gw_algo_cfg *cfg, const char *what)
{
    static const uint32_t capacities[] = {0, 1000, CAPACITY, UINT32_MAX};
    (void)what;
    for (size_t c = 0; c < GW_COUNT_OF(capacities); c++) {
        struct port port = {.ops = (const void *)algo, .cfg = cfg, .memory = memory_make(algo)};
        gw_pkt_pool_init(&port.pool, packets, 0, PACKETS, NULL);
        port.prng = gw_prng_derive(SEED, c);
        port.outside =
            (struct gw_qdisc_port){.pool = &port.pool, .prng = &port.prng, .trim_size = TRIM_SIZE};
        port.ops->init(port.memory.bytes, cfg, capacities[c]);
        for (int step = 0; step < STEPS; step++) {
            /* Alternately more goes in and more goes out, so that the queue fills and empties. */
            if (gw_prng_below(&port.prng, 8) < (step / 500 % 2 ? 2u : 6u))
                port_enqueue(&port);
            else
                port_dequeue(&port);
            assert_int_equal(port.in, port.out + port.trimmed + port.dropped + backlog(&port));
        }
        while (backlog(&port) > 0)
            port_dequeue(&port);
        port_dequeue(&port);
        assert_int_equal(port.queued, 0);
        const struct gw_qdisc_state *base = (const void *)port.memory.bytes;
        assert_int_equal(base->marks, port.marked);
        if (capacities[c] == 0)
            assert_true(port.dropped > 0 && port.out > 0);
        memory_check(&port.memory, algo);
    }
}

/* Bytes are conserved at every step, order holds within a class, and marks are counted. */
static void conformance_qdisc__conserves_bytes_and_order(void **state)
{
    (void)state;
    each_algo(&gw_qdisc_registry, check_qdisc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conformance_algo__describes_itself),
        cmocka_unit_test(conformance_cc__keeps_windows_in_bounds),
        cmocka_unit_test(conformance_grant__plans_what_a_link_can_take),
        cmocka_unit_test(conformance_lb__keeps_entropies_in_range),
        cmocka_unit_test(conformance_loss__backs_off_and_recovers),
        cmocka_unit_test(conformance_finish__is_content_with_all),
        cmocka_unit_test(conformance_finish__has_one_that_wants_all),
        cmocka_unit_test(conformance_urgency__gives_a_train_one_class),
        cmocka_unit_test(conformance_qdisc__conserves_bytes_and_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
