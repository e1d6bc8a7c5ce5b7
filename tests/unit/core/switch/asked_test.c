/* Whom the workers of a job ask, as a switch remembers it. */
#include "support.h"

#include "core/switch/asked.h"

enum {
    ROOM = 3,
    SERVER = 50,
    OTHER = 51,
};

#define IDLE GW_S

static struct gw_asked *open_asked(gw_time idle)
{
    static struct gw_asked asked;
    static const struct gw_tenants nobody = {.count = 0};
    gw_asked_init(&asked, gw_test_take(gw_asked_size(ROOM)), ROOM, idle, &nobody);
    return &asked;
}

static void asked__keeps_to_the_first(void **state)
{
    (void)state;
    struct gw_asked *asked = open_asked(IDLE);
    gw_time now = (gw_time)0 - IDLE / 2; /* wraps soon */
    assert_false(gw_asked_is(asked, 1, SERVER));
    gw_asked_note(asked, 1, SERVER, true, now);
    gw_asked_note(asked, 1, OTHER, true, now + IDLE - 1);
    assert_true(gw_asked_is(asked, 1, SERVER) && !gw_asked_is(asked, 1, OTHER));
    gw_asked_note(asked, 1, SERVER, true, now + IDLE - 1); /* its workers report */
    gw_asked_note(asked, 1, OTHER, true, now + IDLE);
    assert_true(gw_asked_is(asked, 1, SERVER));
    gw_asked_note(asked, 1, OTHER, true, now + 2 * IDLE - 1); /* silent for long enough */
    assert_true(gw_asked_is(asked, 1, OTHER) && !gw_asked_is(asked, 1, SERVER));
    free(asked->entries);
}

static void asked__forgets_who_was_silent_for_longest(void **state)
{
    (void)state;
    struct gw_asked *asked = open_asked(IDLE);
    for (uint32_t job = 1; job <= ROOM; job++)
        gw_asked_note(asked, job, SERVER, true, job);
    gw_asked_note(asked, 1, SERVER, true, 10);
    gw_asked_note(asked, 9, OTHER, true, 11);
    assert_false(gw_asked_is(asked, 2, SERVER));
    assert_true(gw_asked_is(asked, 1, SERVER) && gw_asked_is(asked, 3, SERVER) &&
                gw_asked_is(asked, 9, OTHER));
    for (uint32_t job = 100; job < 1000; job++) {
        gw_asked_note(asked, job, SERVER, true, job);
        assert_true(gw_asked_is(asked, job, SERVER));
    }
    assert_int_equal(asked->count, ROOM);
    free(asked->entries);
}

/* A server that has ended the job, or gone, is asked by late words alone: the job's next one takes
 * its place at once, until a worker joins it again. */
static void asked__is_free_for_the_next_when_it_is_over(void **state)
{
    (void)state;
    for (int is_gone = 0; is_gone < 2; is_gone++) {
        struct gw_asked *asked = open_asked(IDLE);
        gw_asked_note(asked, 1, SERVER, true, 0);
        gw_asked_note(asked, 2, OTHER, true, 0);
        if (is_gone)
            gw_asked_gone(asked, SERVER);
        else
            gw_asked_end(asked, 1);
        gw_asked_note(asked, 1, SERVER, false, 1);
        assert_true(gw_asked_is(asked, 1, SERVER));
        gw_asked_note(asked, 1, OTHER, true, 2);
        assert_true(gw_asked_is(asked, 1, OTHER));
        gw_asked_note(asked, 1, SERVER, true, 3);
        gw_asked_note(asked, 2, SERVER, true, 3);
        assert_true(gw_asked_is(asked, 1, OTHER) && gw_asked_is(asked, 2, OTHER));
        gw_asked_end(asked, 1);
        gw_asked_note(asked, 1, OTHER, true, 4); /* it goes on */
        gw_asked_note(asked, 1, SERVER, true, 5);
        assert_true(gw_asked_is(asked, 1, OTHER));
        free(asked->entries);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asked__keeps_to_the_first),
        cmocka_unit_test(asked__is_free_for_the_next_when_it_is_over),
        cmocka_unit_test(asked__forgets_who_was_silent_for_longest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
