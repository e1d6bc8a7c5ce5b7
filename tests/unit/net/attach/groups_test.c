/*
 * The multicast groups of a station: one for the neighbours of each job who have the same key, as
 * long as it has any, with an address and a cookie of its own.
 */
#include "host.h"
#include "support.h"

#include "net/attach/groups.h"
#include "net/key.h"
#include "net/udp/udp.h"

enum {
    SESSIONS = 8, /* numbers of neighbours, and the first of a group */
    GROUPS = 3,
    MTU = 1000,
    PKTS = 128,
    PORT = 29700,
};

enum {
    LEFT = 101, /* jobs */
    RIGHT = 102,
    THIRD = 103,
    FOURTH = 104,
};

#define KEY       UINT64_C(0xfeed)
#define OTHER_KEY UINT64_C(0xbeef)

struct fixture {
    struct gw_test_host host;
    struct gw_datapath *udp;
    struct gw_groups *groups;
    struct gw_sock_addr member; /* where all neighbours are */
};

static int open_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct gw_groups_cfg cfg = {.count = GROUPS, .first_peer = SESSIONS};
    char error[GW_NET_ERROR_MAX];
    assert_non_null(f);
    assert_int_equal(gw_key_setup(), 0);
    struct gw_endpoint_cfg host_cfg = gw_test_host_cfg(1, MTU);
    gw_test_host_open(&f->host, &host_cfg, PKTS);
    struct gw_datapath_cfg udp_cfg = {
        .pool = &f->host.pool,
        .address = "127.0.0.1",
        .entropies = 1,
        .mtu = MTU,
        .peers_max = SESSIONS + GROUPS,
    };
    assert_int_equal(gw_datapath_open(&gw_datapath_udp, &udp_cfg, &f->udp, error), 0);
    assert_int_equal(gw_sock_addr_parse("239.77.1.255", PORT, &cfg.first), 0);
    assert_int_equal(gw_sock_addr_parse("127.0.0.1", 4791, &f->member), 0);
    f->groups = gw_groups_open(&cfg);
    assert_non_null(f->groups);
    *state = f;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;
    gw_groups_close(f->groups);
    gw_datapath_close(f->udp);
    gw_test_host_close(&f->host);
    free(f);
    return 0;
}

static struct gw_attach_group add(struct fixture *f, uint16_t peer, uint32_t job, uint64_t key)
{
    return gw_groups_add(f->groups, f->udp, peer, job, key, &f->member);
}

static void leave(struct fixture *f, uint16_t peer)
{
    gw_groups_remove(f->groups, f->udp, peer);
}

static bool is_same(const struct gw_attach_group *a, const struct gw_attach_group *b)
{
    return a->port == b->port && a->cookie == b->cookie &&
           memcmp(a->address, b->address, sizeof(a->address)) == 0;
}

static bool is_at(const struct gw_attach_group *group, const char *host)
{
    struct gw_sock_addr addr;
    uint8_t bytes[GW_SOCK_ADDR_SIZE];
    assert_int_equal(gw_sock_addr_parse(host, PORT, &addr), 0);
    gw_sock_addr_pack(&addr, bytes);
    return group->port == PORT && memcmp(group->address, bytes, sizeof(bytes)) == 0;
}

static void check_chosen(const char *listen, uint32_t ports, uint32_t node_address,
                         const char *first)
{
    struct gw_sock_addr addr;
    char text[GW_SOCK_ADDR_NAME_MAX], error[GW_NET_ERROR_MAX];
    assert_int_equal(gw_sock_addr_resolve(listen, &addr, error), 0);
    struct gw_sock_addr found = gw_groups_choose(&addr, ports, node_address, GROUPS);
    gw_sock_addr_format(&found, text, sizeof(text));
    assert_string_equal(text, first);
    gw_sock_addr_advance(&found, GROUPS - 1);
    assert_true(gw_sock_addr_is_multicast(&found));
}

/* The last is of the same organisation, as the first; no port is one that somebody listens at. */
static void groups_choose__takes_addresses_by_the_nodes(void **state)
{
    (void)state;
    check_chosen("10.0.0.1:4790", 1, 0, "239.192.0.0:4794");
    check_chosen("10.0.0.1:4790", 1, 0x30201, "239.195.2.1:4794");
    check_chosen("10.0.0.1:4790", 1, 0x3ffff - GROUPS - 1, "239.195.255.251:4794");
    check_chosen("10.0.0.1:4790", 1, 0x3ffff - GROUPS, "239.192.0.0:4794");
    check_chosen("10.0.0.1:4794", 1, 5, "239.192.0.5:4795");
    check_chosen("10.0.0.1:4790", 8, 5, "239.192.0.5:4798");
    check_chosen("10.0.0.1:4795", 8, 5, "239.192.0.5:4794");
    check_chosen("[::1]:4790", 1, 7, "[ff12::8000:7]:4794");
}

static void groups_add__gives_a_job_one_group(void **state)
{
    struct fixture *f = *state;
    struct gw_attach_group first = add(f, 0, LEFT, KEY);
    struct gw_attach_group again = add(f, 5, LEFT, KEY);
    assert_true(is_at(&first, "239.77.1.255"));
    assert_true(is_same(&first, &again));
    assert_int_equal(gw_groups_of(f->groups, 0), SESSIONS);
    assert_int_equal(gw_groups_of(f->groups, 5), SESSIONS);
    assert_int_equal(gw_groups_of(f->groups, 1), GW_GROUP_NONE);
}

/* The same job with another key is another one: who has one key must not see the other's. */
static void groups_add__keeps_jobs_and_keys_apart(void **state)
{
    struct fixture *f = *state;
    struct gw_attach_group told[GROUPS] = {
        add(f, 3, LEFT, KEY),
        add(f, 4, LEFT, OTHER_KEY),
        add(f, 5, RIGHT, KEY),
    };
    assert_true(is_at(&told[0], "239.77.1.255"));
    assert_true(is_at(&told[1], "239.77.2.0"));
    assert_true(is_at(&told[2], "239.77.2.1"));
    for (uint16_t i = 0; i < GROUPS; i++) {
        assert_int_equal(gw_groups_of(f->groups, (uint16_t)(3 + i)), SESSIONS + i);
        for (int k = 0; k < i; k++)
            assert_true(told[i].cookie != told[k].cookie);
    }
}

static void groups_add__tells_none_when_all_are_in_use(void **state)
{
    struct fixture *f = *state;
    for (uint16_t i = 0; i < GROUPS; i++)
        assert_int_equal(add(f, i, LEFT + i, KEY).port, PORT);
    assert_int_equal(add(f, 6, FOURTH, KEY).port, 0);
    assert_int_equal(gw_groups_of(f->groups, 6), GW_GROUP_NONE);
    leave(f, 6); /* it has nothing to leave */
    /* There is still room in those that are there. */
    assert_int_equal(add(f, 7, RIGHT, KEY).port, PORT);
    assert_int_equal(gw_groups_of(f->groups, 7), SESSIONS + 1);
}

/* Loopback does not lead there. */
static void groups_add__tells_none_who_cannot_be_reached(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(gw_sock_addr_parse("192.0.2.1", 4791, &f->member), 0);
    assert_int_equal(add(f, 0, LEFT, KEY).port, 0);
    assert_int_equal(gw_groups_of(f->groups, 0), GW_GROUP_NONE);
    assert_null(gw_datapath_peer(f->udp, SESSIONS));
}

/* What is sent to the group's number goes where its members were told to listen. */
static void groups__are_destinations_while_they_have_members(void **state)
{
    struct fixture *f = *state;
    assert_null(gw_datapath_peer(f->udp, SESSIONS));
    struct gw_attach_group told = add(f, 0, LEFT, KEY);
    add(f, 1, LEFT, KEY);
    add(f, 2, RIGHT, KEY);
    const struct gw_datapath_peer *peer = gw_datapath_peer(f->udp, SESSIONS);
    assert_non_null(peer);
    assert_true(peer->tx_cookie == told.cookie);
    assert_true(peer->rx_cookie != told.cookie); /* nothing comes from it */
    assert_int_equal(gw_sock_addr_port(&peer->addr), PORT);
    assert_true(peer->addr.interface > 0);
    assert_non_null(gw_datapath_peer(f->udp, SESSIONS + 1));
    assert_null(gw_datapath_peer(f->udp, SESSIONS + 2));
    leave(f, 0);
    assert_non_null(gw_datapath_peer(f->udp, SESSIONS));
    leave(f, 1);
    assert_null(gw_datapath_peer(f->udp, SESSIONS));
    assert_non_null(gw_datapath_peer(f->udp, SESSIONS + 1));
    leave(f, 2);
    leave(f, 2); /* once more changes nothing */
    assert_null(gw_datapath_peer(f->udp, SESSIONS + 1));
}

/* Who has left does not know the cookie of those who come after. */
static void groups_remove__frees_the_group_for_others(void **state)
{
    struct fixture *f = *state;
    struct gw_attach_group before = add(f, 0, LEFT, KEY);
    add(f, 1, RIGHT, KEY);
    leave(f, 0);
    assert_int_equal(gw_groups_of(f->groups, 0), GW_GROUP_NONE);
    struct gw_attach_group after = add(f, 2, THIRD, KEY);
    assert_true(is_at(&after, "239.77.1.255"));
    assert_true(after.cookie != before.cookie);
    assert_int_equal(gw_groups_of(f->groups, 2), SESSIONS);
    assert_true(gw_datapath_peer(f->udp, SESSIONS)->tx_cookie == after.cookie);
    leave(f, 2);
    struct gw_attach_group again = add(f, 0, LEFT, KEY); /* the first job is back */
    assert_true(is_at(&again, "239.77.1.255"));
    assert_true(again.cookie != before.cookie && again.cookie != after.cookie);
}

/* A number that is another's now leaves the group that it was in. */
static void groups_add__moves_a_member(void **state)
{
    struct fixture *f = *state;
    add(f, 0, LEFT, KEY);
    add(f, 1, RIGHT, KEY);
    add(f, 0, RIGHT, KEY);
    assert_int_equal(gw_groups_of(f->groups, 0), SESSIONS + 1);
    assert_null(gw_datapath_peer(f->udp, SESSIONS));
    leave(f, 1);
    assert_non_null(gw_datapath_peer(f->udp, SESSIONS + 1));
    leave(f, 0);
    assert_null(gw_datapath_peer(f->udp, SESSIONS + 1));
}

static void groups_next__goes_through_those_with_members(void **state)
{
    struct fixture *f = *state;
    struct gw_sock_addr to;
    uint16_t at = 0, member = 0;
    assert_false(gw_groups_next(f->groups, false, &at, &to, &member));
    add(f, 6, LEFT, KEY);
    add(f, 2, RIGHT, KEY);
    struct gw_attach_group third = add(f, 4, THIRD, KEY);
    add(f, 7, LEFT, KEY);
    leave(f, 2);
    leave(f, 6);
    at = 0;
    assert_true(gw_groups_next(f->groups, false, &at, &to, &member));
    assert_int_equal(member, 7);
    assert_true(gw_sock_addr_is_same_host(&to, &gw_datapath_peer(f->udp, SESSIONS)->addr));
    assert_true(gw_groups_next(f->groups, false, &at, &to, &member));
    assert_int_equal(member, 4);
    uint8_t bytes[GW_SOCK_ADDR_SIZE];
    gw_sock_addr_pack(&to, bytes);
    assert_memory_equal(bytes, third.address, sizeof(bytes));
    assert_int_equal(gw_sock_addr_port(&to), PORT);
    assert_true(to.interface > 0);
    assert_false(gw_groups_next(f->groups, false, &at, &to, &member));
}

/* Some probes of its own for each member that comes, of its group alone. */
static void groups_next__probes_early_where_somebody_has_come(void **state)
{
    struct fixture *f = *state;
    struct gw_sock_addr to;
    uint16_t at, member = 0;
    uint32_t early[2] = {0};
    add(f, 6, LEFT, KEY);
    for (uint32_t round = 0; round < 2; round++) {
        add(f, round ? 7 : 2, RIGHT, KEY);
        for (uint32_t i = 0; i < 100; i++)
            for (at = 0; gw_groups_next(f->groups, true, &at, &to, &member);)
                early[member == 6]++;
        assert_int_equal(early[1], 6);
        assert_int_equal(early[0], 6 * (round + 1));
    }
    at = 0;
    assert_true(gw_groups_next(f->groups, false, &at, &to, &member));
    assert_true(gw_groups_next(f->groups, false, &at, &to, &member));
    assert_false(gw_groups_next(f->groups, false, &at, &to, &member));
    add(f, 3, THIRD, KEY);
    leave(f, 3);
    at = 0;
    assert_false(gw_groups_next(f->groups, true, &at, &to, &member)); /* whom? */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        TEST(groups_choose__takes_addresses_by_the_nodes),
        TEST(groups_add__gives_a_job_one_group),
        TEST(groups_add__keeps_jobs_and_keys_apart),
        TEST(groups_add__tells_none_when_all_are_in_use),
        TEST(groups_add__tells_none_who_cannot_be_reached),
        TEST(groups__are_destinations_while_they_have_members),
        TEST(groups_remove__frees_the_group_for_others),
        TEST(groups_add__moves_a_member),
        TEST(groups_next__goes_through_those_with_members),
        TEST(groups_next__probes_early_where_somebody_has_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
