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
    gw_asked_note(asked, 1, SERVER, now);
    gw_asked_note(asked, 1, OTHER, now + IDLE - 1);
    assert_true(gw_asked_is(asked, 1, SERVER) && !gw_asked_is(asked, 1, OTHER));
    gw_asked_note(asked, 1, SERVER, now + IDLE - 1); /* its workers report */
    gw_asked_note(asked, 1, OTHER, now + IDLE);
    assert_true(gw_asked_is(asked, 1, SERVER));
    gw_asked_note(asked, 1, OTHER, now + 2 * IDLE - 1); /* silent for long enough */
    assert_true(gw_asked_is(asked, 1, OTHER) && !gw_asked_is(asked, 1, SERVER));
    free(asked->entries);
}

static void asked__forgets_who_was_silent_for_longest(void **state)
{
    (void)state;
    struct gw_asked *asked = open_asked(IDLE);
    for (uint32_t job = 1; job <= ROOM; job++)
        gw_asked_note(asked, job, SERVER, job);
    gw_asked_note(asked, 1, SERVER, 10);
    gw_asked_note(asked, 9, OTHER, 11);
    assert_false(gw_asked_is(asked, 2, SERVER));
    assert_true(gw_asked_is(asked, 1, SERVER) && gw_asked_is(asked, 3, SERVER) &&
                gw_asked_is(asked, 9, OTHER));
    for (uint32_t job = 100; job < 1000; job++) {
        gw_asked_note(asked, job, SERVER, job);
        assert_true(gw_asked_is(asked, job, SERVER));
    }
    assert_int_equal(asked->count, ROOM);
    free(asked->entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asked__keeps_to_the_first),
        cmocka_unit_test(asked__forgets_who_was_silent_for_longest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
