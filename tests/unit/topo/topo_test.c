/* Ports, names and latencies of a topology that is made by hand. */
#include "support.h"

#include "base/error.h"
#include "topo/topo.h"

/* Two hosts on one switch, with two links to the second host. */
static void make(struct gw_topo *topo)
{
    gw_topo_init(topo);
    uint32_t a = gw_topo_add_node(topo, false, 0, 0, "host%u", 0);
    uint32_t b = gw_topo_add_node(topo, false, 0, 5, "host%u", 1);
    uint32_t sw = gw_topo_add_node(topo, true, 0, 400, "sw%u", 0);
    gw_topo_add_link(topo, sw, b, 1000000000, 600);
    gw_topo_add_link(topo, a, sw, 2000000000, 700);
    gw_topo_add_link(topo, b, sw, 3000000000, 800);
}

static void topo_finish__numbers_ports_by_peer_and_link(void **state)
{
    (void)state;
    struct gw_topo topo;
    char why[128];
    make(&topo);
    assert_int_equal(gw_topo_finish(&topo, why, sizeof(why)), GW_OK);
    const struct gw_topo_node *sw = &topo.nodes[2];
    assert_int_equal(sw->port_count, 3);
    static const uint32_t links[] = {1, 0, 2}, peers[] = {0, 1, 1}, peer_ports[] = {0, 0, 1};
    for (uint32_t p = 0; p < GW_COUNT_OF(links); p++) {
        const struct gw_topo_port *port = &topo.ports[sw->first_port + p];
        assert_int_equal(port->link, links[p]);
        assert_int_equal(port->peer, peers[p]);
        assert_int_equal(port->peer_port, peer_ports[p]);
        assert_int_equal(topo.links[port->link].side[port->side].node, 2);
        assert_int_equal(topo.links[port->link].side[port->side].port, p);
    }
    gw_topo_fini(&topo);
}

static void topo_finish__may_be_repeated(void **state)
{
    (void)state;
    struct gw_topo topo;
    char why[128];
    make(&topo);
    for (int i = 0; i < 2; i++)
        assert_int_equal(gw_topo_finish(&topo, why, sizeof(why)), GW_OK);
    assert_int_equal(topo.nodes[2].port_count, 3);
    gw_topo_fini(&topo);
}

static void topo_finish__refuses_a_host_without_link(void **state)
{
    (void)state;
    struct gw_topo topo;
    char why[128];
    gw_topo_init(&topo);
    assert_int_equal(gw_topo_finish(&topo, why, sizeof(why)), GW_ERR_INVALID);
    assert_non_null(strstr(why, "no host"));
    gw_topo_add_node(&topo, false, 0, 0, "lonely");
    assert_int_equal(gw_topo_finish(&topo, why, sizeof(why)), GW_ERR_INVALID);
    assert_non_null(strstr(why, "lonely"));
    gw_topo_fini(&topo);
}

static void topo_finish__refuses_too_many_ports(void **state)
{
    (void)state;
    struct gw_topo topo;
    char why[128];
    gw_topo_init(&topo);
    uint32_t host = gw_topo_add_node(&topo, false, 0, 0, "h");
    uint32_t sw = gw_topo_add_node(&topo, true, 0, 0, "full");
    for (uint32_t i = 0; i < UINT16_MAX; i++)
        gw_topo_add_link(&topo, host, sw, 1000000000, 1);
    assert_int_equal(gw_topo_finish(&topo, why, sizeof(why)), GW_OK);
    gw_topo_add_link(&topo, host, sw, 1000000000, 1);
    assert_int_equal(gw_topo_finish(&topo, why, sizeof(why)), GW_ERR_INVALID);
    assert_non_null(strstr(why, "65536 links"));
    gw_topo_fini(&topo);
}

static void topo_find__knows_names(void **state)
{
    (void)state;
    struct gw_topo topo;
    make(&topo);
    assert_int_equal(gw_topo_find(&topo, "sw0"), 2);
    assert_int_equal(gw_topo_find(&topo, "sw1"), UINT32_MAX);
    assert_int_equal(topo.host_count, 2);
    gw_topo_fini(&topo);
}

static void topo_latency__counts_the_receiving_node(void **state)
{
    (void)state;
    struct gw_topo topo;
    make(&topo);
    assert_int_equal(gw_topo_latency_min(&topo), 600 + 5);   /* sw0 to host1, first link */
    assert_int_equal(gw_topo_latency_max(&topo), 800 + 400); /* host1 to sw0, second link */
    gw_topo_fini(&topo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(topo_finish__numbers_ports_by_peer_and_link),
        cmocka_unit_test(topo_finish__may_be_repeated),
        cmocka_unit_test(topo_finish__refuses_a_host_without_link),
        cmocka_unit_test(topo_finish__refuses_too_many_ports),
        cmocka_unit_test(topo_find__knows_names),
        cmocka_unit_test(topo_latency__counts_the_receiving_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
