/* Learned addresses: who comes first, room, shares, silence, and ports that are forgotten. */
#include "support.h"

#include "base/error.h"
#include "base/prng.h"
#include "core/switch/learned.h"

enum {
    EACH = 8,
    PORTS = 4,
    MAX = EACH * PORTS,
};

#define IDLE (10 * GW_S)

static void open_below(struct gw_learned *learned, uint16_t uplink)
{
    const struct gw_learned_cfg cfg = {
        .max = MAX, .port_count = PORTS, .uplink = uplink, .idle = IDLE};
    gw_learned_init(learned, malloc(gw_learned_size(&cfg)), &cfg);
}

static void open(struct gw_learned *learned)
{
    open_below(learned, GW_PORT_NONE);
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
        assert_int_equal(gw_learned_note(&learned, 100 + i, 1, i), 0);
    assert_int_equal(gw_learned_note(&learned, 100, 1, MAX), 0); /* sends again: 101 is oldest */
    assert_int_equal(gw_learned_note(&learned, 500, 1, IDLE), GW_ERR_NO_ROOM);
    assert_int_equal(gw_learned_port(&learned, 500), GW_PORT_NONE);
    assert_int_equal(gw_learned_note(&learned, 500, 1, IDLE + 1), 0);
    assert_int_equal(gw_learned_port(&learned, 500), 1);
    assert_int_equal(gw_learned_port(&learned, 101), GW_PORT_NONE);
    assert_int_equal(gw_learned_port(&learned, 100), 1);
    close(&learned);
}

/* Who sends in ever new names by one port takes what is free, and gives it back to others up to
 * their shares; what they have he never takes, however long they are silent. */
static void learned__every_port_has_its_share(void **state)
{
    (void)state;
    struct gw_learned learned;
    open(&learned);
    for (uint32_t i = 0; i < EACH + 2; i++) /* beyond its share, but not the last to grow */
        assert_int_equal(gw_learned_note(&learned, i, 3, 0), 0);
    for (uint32_t i = 0; i < 10 * MAX; i++)
        assert_int_equal(gw_learned_note(&learned, 1000 + i, 2, 0),
                         i < MAX - EACH - 2 ? 0 : GW_ERR_NO_ROOM);
    for (uint32_t i = 0; i < EACH; i++) {
        assert_int_equal(gw_learned_note(&learned, 100 + i, 0, 1), 0);
        assert_int_equal(gw_learned_port(&learned, 1000 + i), GW_PORT_NONE);
    }
    assert_int_equal(gw_learned_note(&learned, 200, 0, 1), GW_ERR_NO_ROOM);
    for (uint32_t i = 0; i < 10 * MAX; i++)
        gw_learned_note(&learned, 5000 + i, 2, 2 * IDLE);
    for (uint32_t i = 0; i < EACH; i++)
        assert_int_equal(gw_learned_port(&learned, 100 + i), 0);
    for (uint32_t i = 0; i < EACH + 2; i++)
        assert_int_equal(gw_learned_port(&learned, i), 3);
    close(&learned);
}

/* What is above is noted while there is room, and takes nobody's place. */
static void learned__what_is_above_makes_room(void **state)
{
    (void)state;
    struct gw_learned learned;
    open_below(&learned, 0);
    assert_int_equal(gw_learned_note(&learned, 7, 0, 0), 0);
    assert_int_equal(gw_learned_note(&learned, 7, 1, IDLE - 1), GW_ERR_INVALID);
    assert_int_equal(gw_learned_note(&learned, 7, 1, IDLE), 0);                  /* it has moved */
    assert_int_equal(gw_learned_note(&learned, 7, 0, 3 * IDLE), GW_ERR_INVALID); /* for good */
    assert_int_equal(gw_learned_port(&learned, 7), 1);
    for (uint32_t i = 0; i < 2 * MAX; i++)
        assert_int_equal(gw_learned_note(&learned, 100 + i, 0, IDLE + 1),
                         i < MAX - 1 ? 0 : GW_ERR_NO_ROOM);
    for (uint32_t i = 0; i < 2 * MAX; i++) { /* far beyond its share */
        assert_int_equal(gw_learned_note(&learned, 1000 + i, 1, IDLE + 1),
                         i < MAX - 1 ? 0 : GW_ERR_NO_ROOM);
        assert_int_equal(gw_learned_port(&learned, 100 + i), GW_PORT_NONE);
    }
    assert_int_equal(gw_learned_note(&learned, 5000, 0, 2 * IDLE), GW_ERR_NO_ROOM);
    assert_int_equal(gw_learned_port(&learned, 7), 1);
    close(&learned);
}

/* What is known, by address. */
struct known {
    uint16_t port[3 * MAX];
    uint32_t count[PORTS], all;
};

static void list(const struct gw_learned *learned, struct known *known)
{
    uint32_t at = 0;
    *known = (struct known){.all = 0};
    memset(known->port, 0xff, sizeof(known->port));
    for (const struct gw_learned_entry *entry; (entry = gw_learned_next(learned, &at));) {
        assert_int_equal(known->port[entry->address], GW_PORT_NONE);
        known->port[entry->address] = entry->port;
        known->count[entry->port]++;
        known->all++;
    }
}

/* Random addresses by random ports: nothing is lost that need not be, and nobody is turned away
 * from his share. */
static void learned__random_senders(void **state)
{
    (void)state;
    struct gw_learned learned;
    struct gw_prng prng = gw_prng_derive(18, 0);
    gw_time seen[3 * MAX] = {0};
    uint32_t lost = 0, refused = 0;
    struct known before, after;
    open(&learned);
    for (uint32_t i = 0; i < 50000; i++) {
        uint32_t address = gw_prng_below(&prng, 3 * MAX);
        uint16_t port = (uint16_t)(gw_prng_below(&prng, 3) ? 1 : gw_prng_below(&prng, PORTS));
        gw_time now = i * (IDLE / 100);
        if (gw_prng_below(&prng, 200) == 0)
            gw_learned_forget(&learned, port);
        list(&learned, &before);
        int code = gw_learned_note(&learned, address, port, now);
        list(&learned, &after);
        bool is_known = before.port[address] != GW_PORT_NONE;
        bool is_elsewhere = is_known && before.port[address] != port;
        assert_int_equal(code == GW_ERR_INVALID, is_elsewhere);
        if (code == GW_ERR_NO_ROOM)
            assert_true(!is_known && before.all == MAX && before.count[port] >= EACH);
        if (code == 0)
            seen[address] = now;
        assert_int_equal(gw_learned_port(&learned, address),
                         code == GW_ERR_NO_ROOM ? GW_PORT_NONE : after.port[address]);
        assert_true(code != 0 || after.port[address] == port);
        refused += code == GW_ERR_NO_ROOM;
        for (uint32_t other = 0; other < 3 * MAX; other++) {
            uint16_t was = before.port[other];
            if (was == after.port[other] || other == address)
                continue;
            assert_true(code == 0 && before.all == MAX && after.port[other] == GW_PORT_NONE);
            bool is_own = was == port && now - seen[other] >= IDLE;
            assert_true(is_own || (before.count[port] < EACH && before.count[was] > EACH));
            lost++;
        }
    }
    assert_true(lost > 100 && refused > 100);
    close(&learned);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learned__an_address_belongs_to_its_first_port),
        cmocka_unit_test(learned__a_forgotten_port_gives_its_addresses_up),
        cmocka_unit_test(learned__the_one_that_is_silent_longest_makes_room),
        cmocka_unit_test(learned__every_port_has_its_share),
        cmocka_unit_test(learned__what_is_above_makes_room),
        cmocka_unit_test(learned__random_senders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
