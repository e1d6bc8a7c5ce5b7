/*
 * Strangers at a port: each attack runs beside an honest job for a long time. The port must not be
 * low for longer than promised, and the honest job must be honoured each time, and until its burst
 * has come.
 */
#include "notice_fixture.h"

enum {
    STEPS = 40000,
    HONEST = 7,       /* job, by links 0 and 2 */
    ENEMY = 1,        /* link */
    OUT = 3,          /* port that is attacked */
    PERIOD = 20,      /* round trips between two bursts of the honest job */
    JOBS = 10000,     /* numbers that a stranger makes up */
    PACKETS_LOW = 10, /* threshold of the honest job */
};

#define RTT GW_TEST_NOTICE_RTT

/* One step of an attack. */
typedef void attack(struct gw_test_notice *f, uint32_t step);

static struct gw_test_burst enemy(uint32_t src, uint32_t job)
{
    return (struct gw_test_burst){
        .in = ENEMY, .out = OUT, .src = 100 + src, .flow = src, .job = job, .units = 1};
}

static struct gw_test_burst honest(uint16_t in)
{
    return (struct gw_test_burst){
        .in = in, .out = OUT, .src = in, .flow = HONEST, .job = HONEST, .units = PACKETS_LOW / 5};
}

static void never_sends(struct gw_test_notice *f, uint32_t step)
{
    struct gw_test_burst burst = enemy(step, 1);
    gw_test_notice_announce(f, &burst);
}

static void repeats(struct gw_test_notice *f, uint32_t step)
{
    struct gw_test_burst burst = enemy(0, 1);
    (void)step;
    gw_test_notice_announce(f, &burst);
}

/* Announces, and has nothing to send but the head. */
static void sends_heads_only(struct gw_test_notice *f, uint32_t step)
{
    struct gw_test_burst burst = enemy(step / 2, 1);
    if (step % 2)
        gw_test_notice_head(f, &burst, 1);
    else
        gw_test_notice_announce(f, &burst);
}

static void makes_up_jobs(struct gw_test_notice *f, uint32_t step)
{
    struct gw_test_burst burst = enemy(step, 100 + step % JOBS);
    gw_test_notice_announce(f, &burst);
}

/* The same from all sides: by the links of the honest job, too. */
static void makes_up_jobs_everywhere(struct gw_test_notice *f, uint32_t step)
{
    struct gw_test_burst burst = enemy(step, 100 + step % JOBS);
    burst.in = (uint16_t)(step % 4);
    gw_test_notice_announce(f, &burst);
}

static void uses_the_honest_name(struct gw_test_notice *f, uint32_t step)
{
    struct gw_test_burst burst = enemy(step, HONEST);
    burst.flow = HONEST;
    gw_test_notice_announce(f, &burst);
}

/* Whose addresses can be made up, too: notices that ask for less, or go elsewhere, and heads. */
static void uses_the_honest_burst(struct gw_test_notice *f, uint32_t step)
{
    struct gw_test_burst burst = honest((uint16_t)(step % 2 * 2));
    burst.in = ENEMY;
    burst.out = step / 8 % 2 ? OUT : 2;
    burst.units = GW_NOTICE_UNITS_MAX;
    if (step / 2 % 2)
        gw_test_notice_head(f, &burst, 1);
    else
        gw_test_notice_announce(f, &burst);
}

static void forges_heads(struct gw_test_notice *f, uint32_t step)
{
    struct gw_test_burst burst = enemy(step, HONEST);
    burst.flow = HONEST;
    gw_test_notice_head(f, &burst, step % 2 ? GW_SWITCH_NOTICE_ALL : 1);
}

/* Notices that go elsewhere and come back, with as many bursts as there is room for. */
static void fills_the_table(struct gw_test_notice *f, uint32_t step)
{
    for (uint32_t i = 0; i < 8; i++) {
        struct gw_test_burst burst = enemy(step * 8 + i, 1 + i);
        burst.out = (uint16_t)(i % 2 ? OUT : (step + i) % 4);
        gw_test_notice_announce(f, &burst);
    }
}

/* The honest job announces when its period begins, and sends a round trip later. Before `from` it
 * need not be honoured. */
static void behave(struct gw_test_notice *f, gw_time at, gw_time step, gw_time from)
{
    gw_time phase = at % (PERIOD * RTT);
    uint64_t refused = gw_test_notice_stats(f, OUT).refused;
    for (uint16_t in = 0; in <= 2; in += 2) {
        struct gw_test_burst burst = honest(in);
        if (phase < step)
            gw_test_notice_announce(f, &burst);
        else if (phase >= RTT && phase < RTT + step)
            gw_test_notice_head(f, &burst, 1);
    }
    if (at < from)
        return;
    assert_int_equal(gw_test_notice_stats(f, OUT).refused, refused);
    if (phase < RTT)
        assert_true(f->bytes[OUT] <= PACKETS_LOW * GW_TEST_NOTICE_PACKET);
}

/* Most time that a port may be low, with so many accounts. */
static gw_time bound(const struct gw_test_notice *f, gw_time time, uint32_t accounts)
{
    return time / 4 + f->cfg.save + accounts * f->cfg.hold;
}

/* Runs an attack, which makes a step each `step`; the honest job comes at step `honest_from`.
 * Returns how long the port was low. */
static gw_time run(attack *one, gw_time step, uint32_t honest_from, uint32_t accounts)
{
    struct gw_test_notice f;
    struct gw_switch_notice_cfg cfg = gw_test_notice_cfg();
    gw_test_notice_open(&f, &cfg);
    for (uint32_t i = 0; i < STEPS; i++) {
        one(&f, i);
        if (i >= honest_from)
            behave(&f, (i - honest_from) * step, step, honest_from ? 2 * PERIOD * RTT : 0);
        gw_test_notice_pass(&f, step);
        gw_time low = gw_test_notice_stats(&f, OUT).lowered;
        assert_true(low <= bound(&f, (i + 1) * step, accounts));
    }
    gw_test_notice_pass(&f, f.cfg.hold);
    for (uint16_t port = 0; port < GW_TEST_NOTICE_PORTS; port++)
        assert_int_equal(f.bytes[port], UINT32_MAX);
    gw_time low = gw_test_notice_stats(&f, OUT).lowered;
    gw_test_notice_close(&f);
    return low;
}

/* By himself a stranger with one job gets his share, and no more. */
static void hostile__alone(void **state)
{
    (void)state;
    run(never_sends, 5 * GW_US, STEPS, 1);
    run(repeats, GW_US, STEPS, 1);
    run(sends_heads_only, 5 * GW_US, STEPS, 1);
    run(makes_up_jobs, 5 * GW_US, STEPS, 8);
}

static void hostile__beside_an_honest_job(void **state)
{
    static attack *const attacks[] = {
        never_sends,          repeats,      sends_heads_only, makes_up_jobs,
        uses_the_honest_name, forges_heads, fills_the_table,  uses_the_honest_burst,
    };
    (void)state;
    for (uint32_t i = 0; i < GW_COUNT_OF(attacks); i++) {
        run(attacks[i], 5 * GW_US, 0, 8);
        run(attacks[i], GW_US, 0, 8);
        /* When all room is taken, it waits until what its predecessor owes is paid: for at most
         * hold x links / share, less than two periods. */
        run(attacks[i], 5 * GW_US, STEPS / 4, 8);
    }
}

/* Who shares the links of a job may take its room there, but not the time of the port. */
static void hostile__by_all_links(void **state)
{
    (void)state;
    run(makes_up_jobs_everywhere, 5 * GW_US, STEPS, 8);
}

/* The honest job alone is low for its round trip in each period, and for no longer. */
static void nobody(struct gw_test_notice *f, uint32_t step)
{
    (void)f;
    (void)step;
}

static void honest__pays_what_it_uses(void **state)
{
    gw_time step = 5 * GW_US, periods = STEPS * step / (PERIOD * RTT);
    (void)state;
    assert_int_equal(run(nobody, step, 0, 2), periods * RTT);
    /* Heads that others forge do not change that. */
    assert_int_equal(run(forges_heads, step, 0, 2), periods * RTT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile__alone),
        cmocka_unit_test(hostile__beside_an_honest_job),
        cmocka_unit_test(hostile__by_all_links),
        cmocka_unit_test(honest__pays_what_it_uses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
