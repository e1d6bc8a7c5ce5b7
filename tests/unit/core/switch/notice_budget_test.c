/*
 * The time of one port: its parts, what may be saved up and owed, room, and the bound on the whole
 * under random use.
 */
#include "support.h"

#include "base/prng.h"
#include "core/switch/notice_budget.h"

enum {
    ACCOUNTS = 8,
    STEPS = 200000,
};

#define HOLD (400 * GW_US)
#define SAVE (1600 * GW_US)

static const struct gw_notice_rules rules = {
    .share = GW_Q16_ONE / 4, .save = SAVE, .accounts_max = ACCOUNTS};

struct fixture {
    struct gw_notice_account accounts[ACCOUNTS];
    struct gw_notice_budget budget;
    gw_time now;
};

static void fixture_open(struct fixture *f)
{
    *f = (struct fixture){.now = GW_TIME_NEVER - 10 * GW_MS}; /* the clock wraps soon */
    gw_notice_budget_init(&f->budget, &rules, f->accounts);
    gw_notice_budget_book(&f->budget, &rules, f->now);
}

static void pass(struct fixture *f, gw_time time)
{
    f->now += time;
    gw_notice_budget_book(&f->budget, &rules, f->now);
    gw_notice_budget_check(&f->budget, &rules);
}

/* The account of a job, which is made if there is room. */
static uint32_t ask(struct fixture *f, uint32_t job, uint16_t in)
{
    uint32_t at = gw_notice_budget_find(&f->budget, &rules, job, in);
    if (at != GW_NOTICE_ACCOUNT_NONE)
        return at;
    at = gw_notice_budget_room(&f->budget, &rules, in);
    if (at == GW_NOTICE_ACCOUNT_NONE)
        return at;
    while (f->accounts[at].open)
        gw_notice_budget_close(&f->budget, at);
    gw_notice_budget_take(&f->budget, &rules, at, job, in);
    gw_notice_budget_check(&f->budget, &rules);
    return at;
}

static int64_t balance(struct fixture *f, uint32_t job, uint16_t in)
{
    return f->accounts[ask(f, job, in)].balance;
}

/* To a nanosecond: parts are rounded down. */
static void assert_near(int64_t value, int64_t expected)
{
    int64_t error = value < expected ? expected - value : value - expected;
    assert_true(error <= (int64_t)GW_NS);
}

static void use(struct fixture *f, uint32_t at, gw_time time)
{
    gw_notice_budget_open(&f->budget, at);
    pass(f, time);
    gw_notice_budget_close(&f->budget, at);
}

/* Alone, a job has all that a port may save up, and a share of time. */
static void budget__of_one(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f);
    assert_int_equal(balance(&f, 1, 0), SAVE);
    use(&f, ask(&f, 1, 0), HOLD);
    assert_near(balance(&f, 1, 0), (int64_t)(SAVE - HOLD + HOLD / 4));
    pass(&f, GW_US);
    assert_near(balance(&f, 1, 0), (int64_t)(SAVE - HOLD + (HOLD + GW_US) / 4));
    pass(&f, GW_S);
    assert_int_equal(balance(&f, 1, 0), SAVE);
}

/* Links have equal parts, and the jobs of one divide its part. */
static void budget__is_divided_by_link_then_by_job(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f);
    assert_int_equal(balance(&f, 1, 0), SAVE);
    assert_int_equal(balance(&f, 1, 1), SAVE / 2);
    assert_int_equal(balance(&f, 1, 0), SAVE / 2);
    assert_int_equal(balance(&f, 2, 1), SAVE / 4);
    assert_int_equal(balance(&f, 1, 1), SAVE / 4);
    for (uint32_t i = 0; i < 3; i++)
        f.accounts[i].balance = -(int64_t)HOLD;
    pass(&f, HOLD);
    assert_near(balance(&f, 1, 0), -(int64_t)(HOLD - HOLD / 8));
    assert_near(balance(&f, 1, 1), -(int64_t)(HOLD - HOLD / 16));
    assert_near(balance(&f, 2, 1), -(int64_t)(HOLD - HOLD / 16));
}

/* What one cannot take the others get, and what nobody takes is kept for who comes. */
static void budget__gives_what_is_left_to_others(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f);
    ask(&f, 1, 0);
    ask(&f, 1, 1);
    f.accounts[0].balance = 0;
    f.accounts[1].balance -= 10 * (int64_t)GW_US;
    pass(&f, 400 * GW_US); /* 100 us: 10 for the second, the rest for the first */
    assert_near(f.accounts[1].balance, SAVE / 2);
    assert_near(f.accounts[0].balance, 90 * (int64_t)GW_US);
    assert_near(f.budget.spare, 0);
    pass(&f, GW_S);
    assert_near(f.accounts[0].balance + f.accounts[1].balance + f.budget.spare, SAVE);
    assert_near(balance(&f, 1, 2), SAVE / 3);
}

/* Who keeps the port low together pays in equal parts. */
static void budget__is_charged_in_equal_parts(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f);
    for (uint16_t in = 0; in < 4; in++)
        ask(&f, 1, in);
    for (uint32_t i = 0; i < 4; i++)
        f.accounts[i].balance = 0;
    gw_notice_budget_open(&f.budget, 0);
    gw_notice_budget_open(&f.budget, 0);
    gw_notice_budget_open(&f.budget, 1);
    pass(&f, 160 * GW_US);
    for (uint32_t i = 0; i < 4; i++)
        assert_near(f.accounts[i].balance, (i < 2 ? -70 : 10) * (int64_t)GW_US);
    assert_false(gw_notice_budget_allows(&rules, &f.accounts[0]));
    assert_true(gw_notice_budget_allows(&rules, &f.accounts[2]));
}

/* Room is taken from the link that has most of it: there from who owes least, and with the debt. */
static void budget_room__from_the_largest_link(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f);
    for (uint32_t job = 0; job < 6; job++)
        ask(&f, job, 5);
    ask(&f, 0, 1);
    ask(&f, 0, 2);
    for (uint32_t i = 0; i < ACCOUNTS; i++)
        f.accounts[i].balance = -(int64_t)HOLD;
    f.budget.spare = 0;
    uint32_t least = ask(&f, 3, 5);
    f.accounts[least].balance = -5;
    f.accounts[ask(&f, 0, 1)].balance = 0;
    assert_int_equal(ask(&f, 100, 3), least);
    assert_int_equal(f.accounts[least].balance, -5);
    /* Of a link that has as much only what has been idle for long, the longest first. */
    for (uint32_t i = 0; i < ACCOUNTS; i++)
        f.accounts[i].used = f.now;
    pass(&f, GW_NOTICE_KEEP - 1);
    assert_int_equal(ask(&f, 9, 5), GW_NOTICE_ACCOUNT_NONE);
    f.accounts[ask(&f, 0, 5)].used++;
    f.accounts[ask(&f, 5, 5)].used++;
    uint32_t oldest = ask(&f, 1, 5);
    gw_notice_budget_open(&f.budget, ask(&f, 4, 5));
    pass(&f, 1);
    f.accounts[ask(&f, 2, 5)].balance = 0;
    assert_int_equal(ask(&f, 9, 5), oldest);
    assert_int_equal(ask(&f, 10, 5), GW_NOTICE_ACCOUNT_NONE);
    assert_true(gw_notice_budget_find(&f.budget, &rules, 0, 1) != GW_NOTICE_ACCOUNT_NONE);
}

/* Ten thousand numbers by one link: another link keeps its account, and half of the time. */
static void budget_room__of_many_numbers(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f);
    uint32_t honest = ask(&f, 1, 0);
    for (uint32_t job = 2; job < 10000; job++) {
        ask(&f, job, 1);
        pass(&f, 10 * GW_US);
        assert_int_equal(f.accounts[honest].job, 1);
        assert_true(f.accounts[honest].limit >= (int64_t)SAVE / 2);
    }
}

/* Low time, opened as allowed and never for more than `hold`, stays within the bound. */
static void budget__is_bounded(void **state)
{
    struct fixture f;
    gw_time until[ACCOUNTS] = {0}, low = 0, start;
    struct gw_prng prng = gw_prng_derive(15, 0);
    (void)state;
    fixture_open(&f);
    start = f.now;
    for (uint32_t step = 0; step < STEPS; step++) {
        gw_time time = gw_prng_below(&prng, 40) * GW_US;
        low += f.budget.low ? time : 0;
        pass(&f, time);
        for (uint32_t i = 0; i < ACCOUNTS; i++)
            if (f.accounts[i].open && !gw_time_before(f.now, until[i]))
                gw_notice_budget_close(&f.budget, i);
        uint32_t at = ask(&f, gw_prng_below(&prng, 20), (uint16_t)gw_prng_below(&prng, 4));
        if (at == GW_NOTICE_ACCOUNT_NONE || !gw_notice_budget_allows(&rules, &f.accounts[at]))
            continue;
        if (!f.accounts[at].open)
            gw_notice_budget_open(&f.budget, at);
        until[at] = f.now + HOLD;
        gw_time most = (f.now - start) / 4 + SAVE + ACCOUNTS * (HOLD + 40 * GW_US);
        assert_true(low <= most);
    }
    assert_true(low > (f.now - start) / 5); /* and what is given can be used */
}

/* Without a share nobody is honoured, whatever may be saved up. */
static void budget_allows__nothing_without_a_share(void **state)
{
    struct fixture f;
    struct gw_notice_rules none = rules;
    (void)state;
    fixture_open(&f);
    none.share = 0;
    uint32_t at = ask(&f, 1, 0);
    assert_true(gw_notice_budget_allows(&rules, &f.accounts[at]));
    assert_false(gw_notice_budget_allows(&none, &f.accounts[at]));
}

/* What may be saved up grows and shrinks: nobody keeps more than that, and a port that nobody has
 * used has all of it. */
static void budget_limit__follows(void **state)
{
    struct fixture f;
    struct gw_notice_rules other = rules;
    (void)state;
    fixture_open(&f);
    other.save = 2 * SAVE;
    gw_notice_budget_limit(&f.budget, &other);
    gw_notice_budget_check(&f.budget, &other);
    assert_int_equal(f.budget.spare, 2 * SAVE);
    gw_notice_budget_take(&f.budget, &other, 0, 1, 0);
    gw_notice_budget_take(&f.budget, &other, 1, 1, 1);
    assert_int_equal(f.accounts[0].balance, SAVE);
    gw_notice_budget_limit(&f.budget, &rules);
    gw_notice_budget_check(&f.budget, &rules);
    assert_int_equal(f.accounts[0].balance, SAVE / 2);
    assert_int_equal(f.accounts[1].balance, SAVE / 2);
    gw_notice_budget_limit(&f.budget, &other);
    f.now += GW_S;
    gw_notice_budget_book(&f.budget, &other, f.now);
    gw_notice_budget_check(&f.budget, &other);
    assert_int_equal(f.accounts[1].balance, SAVE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(budget__of_one),
        cmocka_unit_test(budget__is_divided_by_link_then_by_job),
        cmocka_unit_test(budget__gives_what_is_left_to_others),
        cmocka_unit_test(budget__is_charged_in_equal_parts),
        cmocka_unit_test(budget_room__from_the_largest_link),
        cmocka_unit_test(budget_room__of_many_numbers),
        cmocka_unit_test(budget__is_bounded),
        cmocka_unit_test(budget_allows__nothing_without_a_share),
        cmocka_unit_test(budget_limit__follows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
