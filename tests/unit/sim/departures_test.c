/* Departures of a node: the earliest comes first, whatever is set in which order. */
#include "support.h"

#include "base/prng.h"
#include "sim/departures.h"

enum {
    ROOM = 16,
    PORT_BITS = 4,
    TIMES = 50, /* so few that many are equal */
};

/* A node of `ports` ports without departures. */
static void start(struct gw_sim_node *node, uint64_t *tree, uint32_t ports)
{
    *node = (struct gw_sim_node){.departures = tree, .departure_room = ports};
    for (uint32_t i = 0; i < 2 * ports; i++)
        tree[i] = GW_SIM_DEPARTURE_NONE;
}

/* Random departures against a search through all ports. */
static void departures__come_by_time_and_port(void **state)
{
    (void)state;
    const struct gw_sim sim = {.port_bits = PORT_BITS};
    uint64_t tree[2 * ROOM], keys[ROOM];
    struct gw_sim_node node;
    start(&node, tree, ROOM);
    for (uint32_t i = 0; i < ROOM; i++)
        keys[i] = GW_SIM_DEPARTURE_NONE;
    struct gw_prng prng = {.state = 1};
    for (int step = 0; step < 10000; step++) {
        uint16_t port = (uint16_t)gw_prng_below(&prng, ROOM);
        uint64_t key = gw_sim_departure_key(&sim, port, gw_prng_below(&prng, TIMES));
        keys[port] = gw_prng_below(&prng, 3) ? key : GW_SIM_DEPARTURE_NONE;
        gw_sim_departure_set(&node, port, keys[port]);
        uint64_t first = GW_SIM_DEPARTURE_NONE;
        for (uint32_t i = 0; i < ROOM; i++)
            first = keys[i] < first ? keys[i] : first;
        assert_true(gw_sim_departure_first(&node) == first);
    }
}

static void departures__tell_time_and_port(void **state)
{
    (void)state;
    const struct gw_sim sim = {.port_bits = PORT_BITS};
    uint64_t tree[2];
    struct gw_sim_node node;
    start(&node, tree, 1);
    assert_true(gw_sim_departure_time(&sim, gw_sim_departure_first(&node)) == GW_TIME_NEVER);
    gw_sim_departure_set(&node, 0, gw_sim_departure_key(&sim, 0, 7 * GW_NS));
    assert_true(gw_sim_departure_time(&sim, gw_sim_departure_first(&node)) == 7 * GW_NS);
    uint64_t key = gw_sim_departure_key(&sim, 13, GW_MS);
    assert_true(gw_sim_departure_time(&sim, key) == GW_MS);
    assert_int_equal(gw_sim_departure_port(&sim, key), 13);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(departures__come_by_time_and_port),
        cmocka_unit_test(departures__tell_time_and_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
