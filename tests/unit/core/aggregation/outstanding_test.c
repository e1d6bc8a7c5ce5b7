/* What a worker has out: results in any order, and what is sent again when. */
#include "core/aggregation/outstanding.h"
#include "support.h"

#include <stdlib.h>

enum {
    MAX = 16,
    TIMEOUT = 100,
};

#define FIRST (UINT32_MAX - 2) /* numbers wrap */

struct fixture {
    struct gw_outstanding out;
    void *memory;
};

/* `count` fragments are out, since the time 0. */
static void fixture_open(struct fixture *f, uint32_t count)
{
    f->memory = gw_test_take(gw_outstanding_size(MAX));
    struct gw_outstanding_cfg cfg = {.max = MAX, .first_seq = FIRST, .timeout = TIMEOUT};
    gw_outstanding_init(&f->out, f->memory, &cfg);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(gw_outstanding_take_next(&f->out, 0), FIRST + i);
}

static void fixture_close(struct fixture *f)
{
    free(f->memory);
}

/* The result of the `at`-th fragment comes. True: a loss was found. */
static bool finish(struct fixture *f, uint32_t at, gw_time now)
{
    gw_outstanding_finish(&f->out, FIRST + at, 1, now);
    while (gw_outstanding_advance(&f->out))
        ;
    return gw_outstanding_detect_loss(&f->out, FIRST + at);
}

/* Exactly these fragments wait to be sent again; takes them. */
static void expect_resends(struct fixture *f, const uint32_t *expected, size_t count)
{
    uint32_t seq;
    for (size_t i = 0; i < count; i++) {
        assert_true(gw_outstanding_take_resend(&f->out, &seq, 0));
        assert_int_equal(seq, FIRST + expected[i]);
    }
    assert_false(gw_outstanding_take_resend(&f->out, &seq, 0));
    assert_false(gw_outstanding_has_resend(&f->out));
}

static void advance__stops_at_the_first_without_result(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 4);
    assert_false(finish(&f, 1, 1));
    assert_int_equal(f.out.expected, FIRST);
    assert_true(gw_outstanding_has(&f.out, FIRST) && gw_outstanding_has(&f.out, FIRST + 3));
    assert_false(gw_outstanding_has(&f.out, FIRST + 4));
    assert_false(finish(&f, 0, 1));
    assert_int_equal(f.out.expected, FIRST + 2);
    assert_false(gw_outstanding_has(&f.out, FIRST + 1));
    assert_int_equal(gw_outstanding_count(&f.out), 2);
    assert_int_equal(f.out.ahead, 0);
    fixture_close(&f);
}

static void detect_loss__takes_three_later_results(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 8);
    assert_false(finish(&f, 1, 1));
    assert_false(finish(&f, 2, 1));
    assert_true(finish(&f, 3, 1));
    expect_resends(&f, (uint32_t[]){0}, 1);
    assert_false(finish(&f, 4, 1)); /* it was sent before the resend */
    assert_false(finish(&f, 5, 1));
    assert_false(finish(&f, 6, 1));
    fixture_close(&f);
}

/* The second resend is lost only when what was sent after it has overtaken it. */
static void detect_loss__finds_a_lost_resend(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 4);
    for (uint32_t i = 1; i < 4; i++)
        assert_int_equal(finish(&f, i, 1), i == 3);
    expect_resends(&f, (uint32_t[]){0}, 1);
    for (uint32_t i = 4; i < 8; i++)
        gw_outstanding_take_next(&f.out, 0);
    assert_false(finish(&f, 4, 1));
    assert_false(finish(&f, 5, 1));
    assert_true(finish(&f, 6, 1));
    expect_resends(&f, (uint32_t[]){0}, 1);
    fixture_close(&f);
}

static void detect_loss__sends_the_gap_again_if_wanted(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 8);
    f.out.resends_gap = true;
    assert_false(finish(&f, 2, 1));
    assert_false(finish(&f, 4, 1));
    assert_true(finish(&f, 5, 1));
    expect_resends(&f, (uint32_t[]){0, 1, 3}, 3);
    fixture_close(&f);
}

/* A gap is found once: what was sent again with it is lost when what was sent later has overtaken
 * that. */
static void detect_loss__sends_a_gap_again_once(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 8);
    f.out.resends_gap = true;
    for (uint32_t i = 4; i < 7; i++)
        assert_int_equal(finish(&f, i, 1), i == 6);
    expect_resends(&f, (uint32_t[]){0, 1, 2, 3}, 4);
    assert_false(finish(&f, 7, 1));
    assert_false(finish(&f, 0, 2));
    for (uint32_t i = 8; i < 11; i++)
        gw_outstanding_take_next(&f.out, 2);
    for (uint32_t i = 8; i < 11; i++)
        assert_int_equal(finish(&f, i, 3), i == 10);
    expect_resends(&f, (uint32_t[]){1, 2, 3}, 3);
    fixture_close(&f);
}

/* The last of a gap's losses has been overtaken by what is behind a result before it. */
static void detect_loss__sends_a_gap_again_that_ends_before_it(void **state)
{
    (void)state;
    struct fixture f;
    static const uint32_t order[] = {1, 2, 3, 4, 7, 8, 9, 0, 5};
    fixture_open(&f, 14);
    f.out.resends_gap = true;
    for (size_t i = 0; i < GW_COUNT_OF(order); i++)
        assert_int_equal(finish(&f, order[i], 1), i == 2 || i == 5 || i == 8);
    expect_resends(&f, (uint32_t[]){6}, 1); /* 0 and 5 have come */
    assert_false(finish(&f, 10, 1));        /* sent before it was sent again */
    expect_resends(&f, NULL, 0);
    fixture_close(&f);
}

/* All that lacks its result, and it is no loss; one that is on its way again is no loss, either. */
static void resend_before__sends_what_lacks_its_result(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 8);
    assert_false(finish(&f, 2, 1));
    gw_outstanding_resend_before(&f.out, FIRST + 6, 1);
    expect_resends(&f, (uint32_t[]){0, 1, 3, 4, 5}, 5);
    assert_false(*gw_outstanding_note(&f.out, FIRST) & GW_NOTE_LOST);
    assert_false(finish(&f, 6, 2));
    assert_false(finish(&f, 7, 2));
    expect_resends(&f, NULL, 0);
    for (uint32_t i = 8; i < 11; i++)
        gw_outstanding_take_next(&f.out, 2);
    for (uint32_t i = 8; i < 11; i++)
        assert_int_equal(finish(&f, i, 3), i == 10);
    expect_resends(&f, (uint32_t[]){0}, 1);
    fixture_close(&f);
}

/* It may be on its way; so may what was sent again, and what lies between. How long answers take is
 * soon forgotten. */
static void resend_before__sends_nothing_that_may_be_answered(void **state)
{
    (void)state;
    struct fixture f;
    uint32_t seq;
    fixture_open(&f, 4); /* at 0 */
    gw_outstanding_take_next(&f.out, 15);
    gw_outstanding_take_next(&f.out, 30);
    assert_false(finish(&f, 3, 20)); /* so answers take 20 */
    gw_outstanding_resend_before(&f.out, FIRST + 6, 40);
    for (uint32_t i = 0; i < 5; i += i == 2 ? 2 : 1) {
        assert_true(gw_outstanding_take_resend(&f.out, &seq, 40 + i));
        assert_int_equal(seq, FIRST + i);
    }
    assert_false(gw_outstanding_has_resend(&f.out)); /* the last left 10 ago */
    gw_outstanding_resend_before(&f.out, FIRST + 6, 61);
    expect_resends(&f, (uint32_t[]){0, 1, 5}, 3);
    gw_outstanding_note_answer(&f.out, FIRST + 3, 96); /* known ones, too */
    for (uint32_t i = 0; i < 100; i++)
        gw_outstanding_note_answer(&f.out, FIRST + 3, 1);
    assert_in_range(f.out.longest_answer, 1, 32);
    fixture_close(&f);
}

/* Such as take long because something was lost, or was not sent at all. */
static void note_answer__spares_what_says_nothing(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 4); /* at 0 */
    assert_false(finish(&f, 2, 20));
    assert_false(finish(&f, 0, 70)); /* overtaken: it or its result was lost */
    assert_int_equal(f.out.longest_answer, 20);
    gw_outstanding_note_answer(&f.out, FIRST + 2,
                               TIMEOUT << GW_BACKOFF_MAX); /* sent again, surely */
    gw_outstanding_note_answer(&f.out, FIRST + 4, 90);     /* never sent */
    gw_outstanding_note_answer(&f.out, FIRST + 3 - MAX, 90);
    gw_outstanding_pass_next(&f.out, 80); /* a result from store */
    assert_false(finish(&f, 4, 80));
    assert_int_equal(f.out.longest_answer, 20);
    gw_outstanding_note_answer(&f.out, FIRST + 3, 90);
    assert_int_equal(f.out.longest_answer, 90);
    fixture_close(&f);
}

/* What is not sent again is found lost as if nobody had asked. */
static void resend_before__leaves_holes_to_be_found(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 3); /* at 0 */
    for (uint32_t i = 3; i < 9; i++)
        gw_outstanding_take_next(&f.out, 50);
    gw_outstanding_note_answer(&f.out, FIRST, 20);
    gw_outstanding_resend_before(&f.out, FIRST + 9, 60);
    expect_resends(&f, (uint32_t[]){0, 1, 2}, 3);
    for (uint32_t i = 0; i < 9; i += i == 2 ? 2 : 1)
        assert_int_equal(finish(&f, i, 70), i == 6);
    expect_resends(&f, (uint32_t[]){3}, 1);
    fixture_close(&f);
}

/* The server may ask who has nothing out. */
static void resend_before__does_nothing_when_nothing_is_out(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 1);
    finish(&f, 0, 1);
    gw_outstanding_resend_before(&f.out, FIRST + 1, 1);
    for (uint32_t i = 1; i < 9; i++) {
        gw_outstanding_take_next(&f.out, 2);
        assert_false(finish(&f, i, 3));
    }
    expect_resends(&f, NULL, 0);
    fixture_close(&f);
}

/* Results may come, and fragments be taken from store, before any resend could leave. */
static void resend__has_room_for_all_that_is_out(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, MAX);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < MAX; i++)
            gw_outstanding_resend(&f.out, FIRST + round * MAX + i);
        assert_int_equal(f.out.resend.count, MAX);
        for (uint32_t i = 0; i < MAX; i++) {
            gw_outstanding_finish(&f.out, FIRST + round * MAX + i, 1, 1);
            assert_true(gw_outstanding_advance(&f.out));
            gw_outstanding_take_next(&f.out, 1);
        }
    }
    expect_resends(&f, NULL, 0);
    fixture_close(&f);
}

static void detect_loss__spares_what_the_server_asks_for(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 8);
    *gw_outstanding_note(&f.out, FIRST) |= GW_NOTE_ASKED;
    for (uint32_t i = 1; i < 8; i++)
        assert_false(finish(&f, i, 1));
    expect_resends(&f, NULL, 0);
    fixture_close(&f);
}

/* What was sent after it was noticed comes back, and the answer to the server does not: it is sent
 * again each time, and is no loss. */
static void detect_loss__sends_again_what_the_server_has_asked_for_in_vain(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 4);
    f.out.resends_gap = true;
    *gw_outstanding_note(&f.out, FIRST) |= GW_NOTE_ASKED;
    for (uint32_t i = 1; i < 4; i++)
        assert_false(finish(&f, i, 1));
    for (uint32_t i = 4; i < 7; i++) {
        gw_outstanding_take_next(&f.out, 1);
        expect_resends(&f, NULL, 0);
        assert_false(finish(&f, i, 1));
    }
    expect_resends(&f, (uint32_t[]){0}, 1);
    assert_false(*gw_outstanding_note(&f.out, FIRST) & GW_NOTE_LOST);
    fixture_close(&f);
}

/* Holes are sent again as results come, though a fragment before them is still expected; and when
 * they are expected, not again before what was sent later has overtaken that. */
static void detect_loss__finds_holes(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, MAX);
    *gw_outstanding_note(&f.out, FIRST + 8) |= GW_NOTE_ASKED;
    for (uint32_t i = 1; i < 13; i++)
        if (i != 2 && i != 3 && i != 8)
            finish(&f, i, 1);
    expect_resends(&f, (uint32_t[]){0, 2, 3}, 3);
    assert_true(*gw_outstanding_note(&f.out, FIRST + 3) & GW_NOTE_LOST);
    assert_false(finish(&f, 0, 1)); /* 2 is expected */
    for (uint32_t i = 13; i < MAX; i++)
        assert_false(finish(&f, i, 1));
    expect_resends(&f, NULL, 0);
    assert_false(finish(&f, 2, 1));
    finish(&f, 3, 1);
    assert_int_equal(f.out.expected, FIRST + 8);
    fixture_close(&f);
}

/* What was lost of a hole again is found when it is expected. */
static void detect_loss__finds_a_lost_resend_of_a_hole(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 10);
    for (uint32_t i = 1; i < 10; i++)
        if (i != 2)
            finish(&f, i, 1);
    expect_resends(&f, (uint32_t[]){0, 2}, 2);
    finish(&f, 0, 1);
    for (uint32_t i = 10; i < 13; i++) {
        gw_outstanding_take_next(&f.out, 1);
        expect_resends(&f, NULL, 0);
        assert_int_equal(finish(&f, i, 1), i == 12);
    }
    expect_resends(&f, (uint32_t[]){2}, 1);
    fixture_close(&f);
}

static void take_resend__skips_what_has_its_result(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, MAX);
    for (uint32_t i = 0; i < 4; i++)
        gw_outstanding_resend(&f.out, FIRST + i);
    gw_outstanding_resend(&f.out, FIRST + 1); /* it waits already */
    finish(&f, 0, 1);
    finish(&f, 1, 1);
    finish(&f, 3, 1);
    assert_int_equal(gw_outstanding_take_next(&f.out, 0), FIRST + MAX); /* in the place of 0 */
    assert_true(gw_outstanding_has_resend(&f.out));
    expect_resends(&f, (uint32_t[]){2}, 1);
    gw_outstanding_resend(&f.out, FIRST + 1);
    expect_resends(&f, NULL, 0);
    fixture_close(&f);
}

static void expire__doubles_while_nothing_comes(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 4);
    gw_time now = 0, wait = TIMEOUT;
    for (uint32_t i = 0; i < 9; i++) {
        assert_true(gw_outstanding_deadline(&f.out, now) == now + wait);
        assert_false(gw_outstanding_expire(&f.out, now + wait - 1));
        now += wait;
        assert_true(gw_outstanding_expire(&f.out, now));
        expect_resends(&f, (uint32_t[]){0}, 1);
        wait *= i < 6 ? 2 : 1;
    }
    finish(&f, 2, now);
    assert_true(gw_outstanding_deadline(&f.out, now) == now + TIMEOUT);
    fixture_close(&f);
}

/* Hardly more than what a timeout resent came back: the rest is lost, too. */
static void expire__sends_all_again_when_results_crawl(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 5);
    assert_true(gw_outstanding_expire(&f.out, TIMEOUT));
    expect_resends(&f, (uint32_t[]){0}, 1);
    finish(&f, 0, TIMEOUT + 1);
    finish(&f, 3, TIMEOUT + 1);
    assert_true(gw_outstanding_expire(&f.out, 2 * TIMEOUT + 1));
    expect_resends(&f, (uint32_t[]){1, 2, 4}, 3);
    fixture_close(&f);
}

static void expire__trusts_what_is_out_while_results_come(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 8);
    assert_true(gw_outstanding_expire(&f.out, TIMEOUT));
    expect_resends(&f, (uint32_t[]){0}, 1);
    for (uint32_t i = 0; i < 3; i++)
        finish(&f, i, TIMEOUT + 1);
    assert_true(gw_outstanding_expire(&f.out, 2 * TIMEOUT + 1));
    expect_resends(&f, (uint32_t[]){3}, 1);
    fixture_close(&f);
}

static void expire__waits_for_nothing_that_is_not_out(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 0);
    assert_false(gw_outstanding_expire(&f.out, 5 * TIMEOUT));
    assert_true(gw_outstanding_deadline(&f.out, 5 * TIMEOUT) == 6 * TIMEOUT);
    fixture_close(&f);
}

/* As long as nothing is out, no time is lost. */
static void expire__waits_from_the_first_that_is_out(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 1);
    finish(&f, 0, 10);
    gw_outstanding_take_next(&f.out, 10 + TIMEOUT - 1);
    gw_outstanding_take_next(&f.out, 10 + TIMEOUT + 5);
    assert_false(gw_outstanding_expire(&f.out, 10 + TIMEOUT));
    assert_false(gw_outstanding_expire(&f.out, 10 + 2 * TIMEOUT - 2));
    assert_true(gw_outstanding_expire(&f.out, 10 + 2 * TIMEOUT - 1));
    fixture_close(&f);
}

static void start_over__sends_again_what_has_no_result(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 5);
    assert_true(gw_outstanding_expire(&f.out, TIMEOUT));
    finish(&f, 1, TIMEOUT);
    gw_outstanding_start_over(&f.out);
    gw_outstanding_wait(&f.out, 2 * TIMEOUT);
    expect_resends(&f, (uint32_t[]){0, 2, 3, 4}, 4);
    assert_true(gw_outstanding_deadline(&f.out, 2 * TIMEOUT) == 3 * TIMEOUT);
    gw_outstanding_clear(&f.out, FIRST + 9);
    assert_int_equal(gw_outstanding_count(&f.out), 0);
    expect_resends(&f, NULL, 0);
    fixture_close(&f);
}

enum {
    PROBE = TIMEOUT / 5,
};

static void fixture_open_probing(struct fixture *f, uint32_t count)
{
    fixture_open(f, count);
    f->out.cfg.probe = PROBE;
    gw_patience_init(&f->out.patience, 1, PROBE);
}

/* Once a result has come, the rest of a tensor waits for less than a timeout, then twice as long.
 */
static void expire__probes_for_the_last_fragments(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open_probing(&f, 4);
    assert_false(gw_outstanding_expire(&f.out, TIMEOUT - 1)); /* others may not have begun */
    expect_resends(&f, NULL, 0);
    assert_false(finish(&f, 0, TIMEOUT));
    f.out.least_trip = PROBE / 2; /* this one was long for the others' sake */
    assert_int_equal(gw_outstanding_deadline(&f.out, TIMEOUT), TIMEOUT + PROBE);
    assert_false(gw_outstanding_expire(&f.out, TIMEOUT + PROBE - 1));
    expect_resends(&f, NULL, 0);
    assert_false(gw_outstanding_expire(&f.out, TIMEOUT + PROBE)); /* no loss */
    expect_resends(&f, (uint32_t[]){1}, 1);
    assert_int_equal(*gw_outstanding_note(&f.out, FIRST + 1) & GW_NOTE_LOST, 0);
    for (uint32_t i = 2; i <= 4; i *= 2) {
        assert_false(gw_outstanding_expire(&f.out, TIMEOUT + i * PROBE - 1));
        expect_resends(&f, NULL, 0);
        assert_false(gw_outstanding_expire(&f.out, TIMEOUT + i * PROBE));
        expect_resends(&f, (uint32_t[]){1}, 1);
    }
    assert_false(gw_outstanding_expire(&f.out, 2 * TIMEOUT - 1));
    expect_resends(&f, NULL, 0);
    assert_true(gw_outstanding_expire(&f.out, 2 * TIMEOUT));
    expect_resends(&f, (uint32_t[]){1}, 1);
    assert_false(finish(&f, 1, 2 * TIMEOUT + 1));
    assert_false(gw_outstanding_expire(&f.out, 2 * TIMEOUT + 1 + PROBE));
    expect_resends(&f, (uint32_t[]){2}, 1);
    fixture_close(&f);
}

/* All that is out was lost, and each probe brings what it has sent: the next sends twice as many.
 */
static void expire__probes_for_twice_as_many_when_results_crawl(void **state)
{
    (void)state;
    struct fixture f;
    uint32_t at = 1;
    gw_time now = 0;
    fixture_open_probing(&f, MAX);
    finish(&f, 0, now);
    for (uint32_t count = 1; at + count < MAX; count *= 2) {
        const uint32_t wanted[] = {at, at + 1, at + 2, at + 3};
        GW_ASSERT(count <= GW_COUNT_OF(wanted));
        now += PROBE;
        assert_false(gw_outstanding_expire(&f.out, now));
        expect_resends(&f, wanted, count);
        for (uint32_t i = 0; i < count; i++)
            finish(&f, at++, now);
    }
    assert_true(at >= 8);
    fixture_close(&f);
}

/* A round trip is longer than a probe would wait: it could say nothing before the timeout. */
static void expire__sends_no_probe_before_an_answer_can_be_there(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open_probing(&f, 4);
    assert_false(finish(&f, 0, TIMEOUT / 2));
    assert_int_equal(gw_outstanding_deadline(&f.out, TIMEOUT / 2), TIMEOUT / 2 + TIMEOUT);
    assert_false(gw_outstanding_expire(&f.out, TIMEOUT / 2 + TIMEOUT - 1));
    expect_resends(&f, NULL, 0);
    assert_true(gw_outstanding_expire(&f.out, TIMEOUT / 2 + TIMEOUT));
    expect_resends(&f, (uint32_t[]){1}, 1);
    fixture_close(&f);
}

/* Nothing is lost, but one worker is slow: a result each time that a probe has left. */
static void expire__sends_few_probes_to_who_is_slow(void **state)
{
    (void)state;
    enum { RESULTS = 10 * MAX };
    struct fixture f;
    gw_time now = 0;
    uint32_t seq, resent = 0;
    fixture_open_probing(&f, MAX);
    for (uint32_t i = 0; i < RESULTS; i++) {
        f.out.least_trip = 1; /* once it was fast */
        assert_false(gw_outstanding_expire(&f.out, now += PROBE));
        while (gw_outstanding_take_resend(&f.out, &seq, now))
            resent++;
        assert_true(f.out.probed <= gw_outstanding_count(&f.out));
        assert_false(finish(&f, i, now += PROBE / 2));
        gw_outstanding_take_next(&f.out, now);
    }
    assert_in_range(resent, RESULTS / 2, 2 * RESULTS);
    fixture_close(&f);
}

/* Long round trips are those of queues, in which nothing waits once nothing comes. */
static void expire__probes_by_the_shortest_round_trip(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open_probing(&f, 4);
    gw_outstanding_note_trip(&f.out, PROBE);
    assert_false(finish(&f, 0, 3 * PROBE)); /* as long as the round trip of this one */
    gw_time after = gw_outstanding_deadline(&f.out, 3 * PROBE);
    assert_in_range(after, 5 * PROBE, 6 * PROBE - 1);
    assert_false(gw_outstanding_expire(&f.out, after - 1));
    expect_resends(&f, NULL, 0);
    assert_false(gw_outstanding_expire(&f.out, after));
    expect_resends(&f, (uint32_t[]){1}, 1);
    fixture_close(&f);
}

/* A window of one: each fragment begins with nothing out, but a result has come before. */
static void expire__probes_in_a_window_of_one(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open_probing(&f, 1);
    assert_false(finish(&f, 0, PROBE / 2));
    gw_outstanding_take_next(&f.out, PROBE);
    assert_false(gw_outstanding_expire(&f.out, 2 * PROBE));
    expect_resends(&f, (uint32_t[]){1}, 1);
    fixture_close(&f);
}

/* What is never sent takes no round trip, and what is sent again tells of none. */
static void finish__times_what_was_sent_once(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 1);
    finish(&f, 0, 5);
    assert_int_equal(f.out.least_trip, 5);
    gw_outstanding_pass_next(&f.out, 6);
    finish(&f, 1, 6);
    gw_outstanding_take_next(&f.out, 6);
    gw_outstanding_resend(&f.out, FIRST + 2);
    finish(&f, 2, 7);
    assert_int_equal(f.out.least_trip, 5);
    fixture_close(&f);
}

/* A fragment goes out and comes back. */
static void go_round(struct fixture *f, uint32_t at, gw_time trip)
{
    gw_outstanding_take_next(&f->out, 0);
    finish(f, at, trip);
}

/* One long round trip may be somebody's pause; two mean that packets wait. The shortest is not
 * remembered for ever: paths change. */
static void is_queued__when_round_trips_are_four_times_the_shortest(void **state)
{
    (void)state;
    enum { TRIP = 1000 };
    struct fixture f;
    uint32_t at = 0;
    fixture_open(&f, 0);
    assert_true(gw_outstanding_is_queued(&f.out)); /* nothing is known */
    go_round(&f, at++, TRIP);
    assert_false(gw_outstanding_is_queued(&f.out));
    go_round(&f, at++, 5 * TRIP);
    assert_false(gw_outstanding_is_queued(&f.out));
    go_round(&f, at++, 5 * TRIP);
    assert_true(gw_outstanding_is_queued(&f.out));
    go_round(&f, at++, 2 * TRIP);
    assert_false(gw_outstanding_is_queued(&f.out));
    while (at < 150)
        go_round(&f, at++, 5 * TRIP);
    assert_false(gw_outstanding_is_queued(&f.out));
    fixture_close(&f);
}

/* So that numbers may wrap. */
static void advance__takes_along_what_was_looked_at(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 8);
    for (uint32_t at = 1; at <= 3; at++)
        finish(&f, at, 1);
    expect_resends(&f, (uint32_t[]){0}, 1);
    assert_true(f.out.was_overtaken);
    for (uint32_t at = 0; at < 8; at += at ? 1 : 4)
        finish(&f, at, 2);
    assert_false(f.out.was_overtaken);
    assert_int_equal(f.out.expected, FIRST + 8);
    assert_int_equal(f.out.checked, FIRST + 8);
    fixture_close(&f);
}

/* How long one waits is what is usual between two results of a window, and two round trips. */
static void expire__probes_when_nothing_has_come_for_longer_than_usual(void **state)
{
    (void)state;
    enum { USUAL = 3 };
    struct fixture f;
    gw_time now = 0;
    fixture_open_probing(&f, 2);
    for (uint32_t i = 0; i < 20 * MAX; i++, now += USUAL) {
        gw_outstanding_finish(&f.out, FIRST + i, 1, now);
        assert_true(gw_outstanding_advance(&f.out));
        gw_outstanding_take_next(&f.out, now);
    }
    now -= USUAL;
    assert_false(gw_outstanding_expire(&f.out, now + 4 * USUAL - 1));
    expect_resends(&f, NULL, 0);
    assert_false(gw_outstanding_expire(&f.out, now + 4 * USUAL));
    expect_resends(&f, (uint32_t[]){20 * MAX}, 1);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(advance__stops_at_the_first_without_result),
        cmocka_unit_test(detect_loss__takes_three_later_results),
        cmocka_unit_test(detect_loss__finds_a_lost_resend),
        cmocka_unit_test(detect_loss__sends_the_gap_again_if_wanted),
        cmocka_unit_test(detect_loss__sends_a_gap_again_once),
        cmocka_unit_test(resend_before__sends_what_lacks_its_result),
        cmocka_unit_test(resend_before__sends_nothing_that_may_be_answered),
        cmocka_unit_test(note_answer__spares_what_says_nothing),
        cmocka_unit_test(resend_before__leaves_holes_to_be_found),
        cmocka_unit_test(resend_before__does_nothing_when_nothing_is_out),
        cmocka_unit_test(resend__has_room_for_all_that_is_out),
        cmocka_unit_test(detect_loss__spares_what_the_server_asks_for),
        cmocka_unit_test(detect_loss__sends_again_what_the_server_has_asked_for_in_vain),
        cmocka_unit_test(detect_loss__finds_holes),
        cmocka_unit_test(detect_loss__finds_a_lost_resend_of_a_hole),
        cmocka_unit_test(take_resend__skips_what_has_its_result),
        cmocka_unit_test(expire__doubles_while_nothing_comes),
        cmocka_unit_test(expire__sends_all_again_when_results_crawl),
        cmocka_unit_test(expire__trusts_what_is_out_while_results_come),
        cmocka_unit_test(expire__waits_for_nothing_that_is_not_out),
        cmocka_unit_test(expire__waits_from_the_first_that_is_out),
        cmocka_unit_test(start_over__sends_again_what_has_no_result),
        cmocka_unit_test(expire__probes_for_the_last_fragments),
        cmocka_unit_test(expire__probes_for_twice_as_many_when_results_crawl),
        cmocka_unit_test(expire__probes_when_nothing_has_come_for_longer_than_usual),
        cmocka_unit_test(expire__sends_no_probe_before_an_answer_can_be_there),
        cmocka_unit_test(expire__sends_few_probes_to_who_is_slow),
        cmocka_unit_test(expire__probes_by_the_shortest_round_trip),
        cmocka_unit_test(expire__probes_in_a_window_of_one),
        cmocka_unit_test(finish__times_what_was_sent_once),
        cmocka_unit_test(is_queued__when_round_trips_are_four_times_the_shortest),
        cmocka_unit_test(advance__takes_along_what_was_looked_at),
        cmocka_unit_test(detect_loss__sends_a_gap_again_that_ends_before_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
