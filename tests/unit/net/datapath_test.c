/* The list of datapaths, what none of them opens with, and the table of neighbours. */
#include "host.h"
#include "support.h"

#include "base/error.h"
#include "net/datapath.h"

enum {
    PEERS = 3,
    MTU = 1000,
    PKTS = 128,
};

static void datapath_find__knows_the_list(void **state)
{
    (void)state;
    const struct gw_datapath_ops *udp = gw_datapath_find("udp");
    assert_non_null(udp);
    assert_string_equal(udp->name, "udp");
    assert_ptr_equal(gw_datapath_find(NULL), udp);
    assert_null(gw_datapath_find("ud"));
    assert_null(gw_datapath_find(""));
}

/* Nothing is asked to open. */
static int never_open(const struct gw_datapath_cfg *cfg, struct gw_datapath **datapath, char *error)
{
    (void)cfg, (void)datapath, (void)error;
    fail();
    return GW_OK;
}

static void datapath_open__refuses_what_none_can_do(void **state)
{
    (void)state;
    const struct gw_datapath_ops ops = {.name = "never", .open = never_open};
    struct gw_test_host host;
    struct gw_endpoint_cfg host_cfg = gw_test_host_cfg(1, MTU);
    gw_test_host_open(&host, &host_cfg, PKTS);
    const struct gw_datapath_cfg good = {
        .pool = &host.pool, .address = "127.0.0.1", .entropies = 1, .mtu = MTU, .peers_max = 1};
    struct gw_datapath_cfg bad[6];
    static const char *const words[] = {"entropies is 0", "entropies is 257",  "mtu is 0",
                                        "peers_max is 0", "peers_max is 4097", "the pool needs"};
    for (uint32_t i = 0; i < 6; i++)
        bad[i] = good;
    bad[0].entropies = 0;
    bad[1].entropies = GW_DATAPATH_ENTROPIES_MAX + 1;
    bad[2].mtu = 0;
    bad[3].peers_max = 0;
    bad[4].peers_max = GW_DATAPATH_PEERS_MAX + 1;
    bad[5].mtu = MTU + 1;
    for (uint32_t i = 0; i < 6; i++) {
        struct gw_datapath *datapath;
        char error[GW_NET_ERROR_MAX] = "";
        assert_int_equal(gw_datapath_open(&ops, &bad[i], &datapath, error), GW_ERR_INVALID);
        assert_non_null(strstr(error, words[i]));
    }
    gw_test_host_close(&host);
}

static void datapath_set_peer__finds_by_the_cookie(void **state)
{
    (void)state;
    struct gw_datapath_peer peers[PEERS] = {0};
    struct gw_datapath datapath = {.peers_max = PEERS, .peers = peers};
    struct gw_datapath_peer peer = {.entropies = 4, .rx_cookie = UINT64_C(0xabcd0000) | 2};
    assert_int_equal(gw_sock_addr_parse("127.0.0.1", 4791, &peer.addr), 0);
    gw_datapath_set_peer(&datapath, &peer);
    assert_null(gw_datapath_peer(&datapath, 0));
    assert_null(gw_datapath_peer(&datapath, 1));
    assert_non_null(gw_datapath_peer(&datapath, 2));
    assert_int_equal(gw_datapath_peer(&datapath, 2)->entropies, 4);
    assert_null(gw_datapath_peer(&datapath, PEERS));
    gw_datapath_clear_peer(&datapath, 2);
    assert_null(gw_datapath_peer(&datapath, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(datapath_find__knows_the_list),
        cmocka_unit_test(datapath_open__refuses_what_none_can_do),
        cmocka_unit_test(datapath_set_peer__finds_by_the_cookie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
