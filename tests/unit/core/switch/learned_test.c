/* Learned addresses: who comes first, room, silence, and ports that are forgotten. */
#include "support.h"

#include "base/error.h"
#include "core/switch/learned.h"

enum {
    MAX = 8,
    PORTS = 4,
};

#define IDLE (10 * GW_S)

static void open(struct gw_learned *learned)
{
    gw_learned_init(learned, malloc(gw_learned_size(MAX, PORTS)), MAX, PORTS, IDLE);
}

static void close(struct gw_learned *learned)
{
    free(learned->entries); /* the beginning of its memory */
}

static void learned__an_address_belongs_to_its_first_port(void **state)
{
    (void)state;
    struct gw_learned learned;
    open(&learned);
    assert_int_equal(gw_learned_port(&learned, 0), GW_PORT_NONE);
    assert_int_equal(gw_learned_note(&learned, 0, 3, 0), 0); /* zero is an address like others */
    assert_int_equal(gw_learned_note(&learned, 77, 1, 0), 0);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(gw_learned_note(&learned, 77, 1, i), 0);
        assert_int_equal(gw_learned_note(&learned, 77, 2, i), GW_ERR_INVALID);
        assert_int_equal(gw_learned_note(&learned, 0, 3, i), 0);
    }
    assert_int_equal(gw_learned_port(&learned, 77), 1);
    assert_int_equal(gw_learned_port(&learned, 0), 3);
    close(&learned);
}

static void learned__a_forgotten_port_gives_its_addresses_up(void **state)
{
    (void)state;
    struct gw_learned learned;
    open(&learned);
    for (uint32_t i = 0; i < MAX; i++)
        assert_int_equal(gw_learned_note(&learned, 100 + i, (uint16_t)(i % 2), 0), 0);
    gw_learned_forget(&learned, 1);
    for (uint32_t i = 0; i < MAX; i++)
        assert_int_equal(gw_learned_port(&learned, 100 + i), i % 2 ? GW_PORT_NONE : 0);
    assert_int_equal(gw_learned_note(&learned, 101, 2, 0), 0); /* it may come back elsewhere */
    assert_int_equal(gw_learned_port(&learned, 101), 2);
    for (uint32_t i = 0; i < MAX / 2 - 1; i++)
        assert_int_equal(gw_learned_note(&learned, 200 + i, 3, 0), 0);
    assert_int_equal(gw_learned_note(&learned, 300, 3, 0), GW_ERR_NO_ROOM);
    close(&learned);
}

static void learned__the_one_that_is_silent_longest_makes_room(void **state)
{
    (void)state;
    struct gw_learned learned;
    open(&learned);
    for (uint32_t i = 0; i < MAX; i++)
        assert_int_equal(gw_learned_note(&learned, 100 + i, 0, i), 0);
    assert_int_equal(gw_learned_note(&learned, 100, 0, MAX), 0); /* sends again: 101 is oldest */
    assert_int_equal(gw_learned_note(&learned, 500, 1, IDLE), GW_ERR_NO_ROOM);
    assert_int_equal(gw_learned_port(&learned, 500), GW_PORT_NONE);
    assert_int_equal(gw_learned_note(&learned, 500, 1, IDLE + 1), 0);
    assert_int_equal(gw_learned_port(&learned, 500), 1);
    assert_int_equal(gw_learned_port(&learned, 101), GW_PORT_NONE);
    assert_int_equal(gw_learned_port(&learned, 100), 0);
    close(&learned);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learned__an_address_belongs_to_its_first_port),
        cmocka_unit_test(learned__a_forgotten_port_gives_its_addresses_up),
        cmocka_unit_test(learned__the_one_that_is_silent_longest_makes_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
