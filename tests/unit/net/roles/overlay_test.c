/* What processes on the network know without talking: what a rank lets leave by its port. */
#include "support.h"

#include "net/roles/overlay.h"

/* What is between packets on the wire is part of the rate that a process was told. */
static void overlay_port_bps__leaves_room_for_what_ethernet_adds(void **state)
{
    static const struct {
        struct gw_overlay_links links;
        uint64_t port_bps;
    } cases[] = {
        {{.hdr = 72, .mtu = 1408, .rate_bps = 1498000000}, 1480000000},
        {{.hdr = 82, .mtu = 100, .rate_bps = 200000000}, 182000000},
        {{.hdr = 72, .mtu = 1408, .rate_bps = GW_OVERLAY_RATE_MAX_BPS}, 395193591455},
        {{.hdr = 72, .mtu = 1408, .rate_bps = 0}, 0},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++)
        assert_true(gw_overlay_port_bps(&cases[i].links) == cases[i].port_bps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlay_port_bps__leaves_room_for_what_ethernet_adds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
