/* Addresses of datagrams: as text, as bytes, one after the other, and compared. */
#include "support.h"

#include "base/error.h"
#include "net/net_error.h"
#include "net/sock_addr.h"

static void sock_addr_parse__is_written_the_same(void **state)
{
    (void)state;
    static const struct {
        const char *host, *name;
        bool is_v6, is_multicast;
    } cases[] = {
        {"127.0.0.1", "127.0.0.1:4791", false, false},
        {"::1", "[::1]:4791", true, false},
        {"239.77.0.1", "239.77.0.1:4791", false, true},
        {"ff02::5", "[ff02::5]:4791", true, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gw_sock_addr addr, again;
        char text[GW_SOCK_ADDR_NAME_MAX];
        uint8_t bytes[GW_SOCK_ADDR_SIZE];
        assert_int_equal(gw_sock_addr_parse(cases[i].host, 4791, &addr), 0);
        gw_sock_addr_format(&addr, text, sizeof(text));
        assert_string_equal(text, cases[i].name);
        gw_sock_addr_format_host(&addr, text, sizeof(text));
        assert_string_equal(text, cases[i].host);
        assert_int_equal(gw_sock_addr_port(&addr), 4791);
        assert_int_equal(gw_sock_addr_is_v6(&addr), cases[i].is_v6);
        assert_int_equal(gw_sock_addr_is_multicast(&addr), cases[i].is_multicast);
        gw_sock_addr_pack(&addr, bytes);
        gw_sock_addr_unpack(bytes, 4791, &again);
        assert_true(gw_sock_addr_is_same(&addr, &again));
    }
}

static void sock_addr_parse__takes_no_names(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "localhost", "127.0.0", "127.0.0.1:1", "[::1]", ":::"};
    struct gw_sock_addr addr;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(gw_sock_addr_parse(bad[i], 1, &addr), GW_ERR_INVALID);
}

static void sock_addr_is_same__compares_host_and_port(void **state)
{
    (void)state;
    struct gw_sock_addr a, port, host, mapped;
    assert_int_equal(gw_sock_addr_parse("10.0.0.1", 7, &a), 0);
    assert_int_equal(gw_sock_addr_parse("10.0.0.1", 8, &port), 0);
    assert_int_equal(gw_sock_addr_parse("10.0.0.2", 7, &host), 0);
    assert_int_equal(gw_sock_addr_parse("::ffff:10.0.0.1", 7, &mapped), 0);
    assert_true(gw_sock_addr_is_same(&a, &a));
    assert_true(gw_sock_addr_is_same_host(&a, &port));
    assert_false(gw_sock_addr_is_same(&a, &port));
    assert_false(gw_sock_addr_is_same_host(&a, &host));
    assert_false(gw_sock_addr_is_same_host(&a, &mapped)); /* another family, another socket */
}

static void sock_addr_advance__carries(void **state)
{
    (void)state;
    static const struct {
        const char *from;
        uint32_t count;
        const char *to;
    } cases[] = {
        {"239.77.0.1", 0, "239.77.0.1"},      {"239.77.0.255", 1, "239.77.1.0"},
        {"239.255.255.255", 1, "240.0.0.0"},  {"255.255.255.255", 1, "0.0.0.0"},
        {"ff02::ffff", 0x10001, "ff02::2:0"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gw_sock_addr addr;
        char text[GW_SOCK_ADDR_NAME_MAX];
        assert_int_equal(gw_sock_addr_parse(cases[i].from, 9, &addr), 0);
        gw_sock_addr_advance(&addr, cases[i].count);
        gw_sock_addr_format_host(&addr, text, sizeof(text));
        assert_string_equal(text, cases[i].to);
        assert_int_equal(gw_sock_addr_port(&addr), 9);
    }
}

static void sock_addr_resolve__wants_host_and_port(void **state)
{
    (void)state;
    static const char *const bad[] = {"",       "127.0.0.1", "127.0.0.1:",  "127.0.0.1:0",  ":80",
                                      "::1:80", "[::1]",     "127.0.0.1:x", "1.2.3.4:65536"};
    struct gw_sock_addr addr;
    char error[GW_NET_ERROR_MAX], text[GW_SOCK_ADDR_NAME_MAX];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(gw_sock_addr_is_name(bad[i]));
        assert_int_equal(gw_sock_addr_resolve(bad[i], &addr, error), GW_ERR_INVALID);
        assert_non_null(strstr(error, "not HOST:PORT"));
        assert_non_null(strstr(error, bad[i]));
    }
    assert_true(gw_sock_addr_is_name("[::1]:65535"));
    assert_true(gw_sock_addr_is_name("nobody.has.this.name:1"));
    assert_int_equal(gw_sock_addr_resolve("[::1]:65535", &addr, error), 0);
    gw_sock_addr_format(&addr, text, sizeof(text));
    assert_string_equal(text, "[::1]:65535");
}

static void sock_addr_row__has_the_names_of_its_ports(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t count;
        const char *last;
    } rows[] = {
        {"a:1", 1, "a:1"},
        {"a-b.c:4790-4793", 4, "a-b.c:4793"},
        {"[::1]:65534-65535", 2, "[::1]:65535"},
        {"127.0.0.1:7-7", 1, "127.0.0.1:7"},
        {"a:1-65535", 65535, "a:65535"},
    };
    static const char *const none[] = {"",      "a",    "a:1-",  "a:-1", "a:2-1",     "a:0-1",
                                       "a:1-x", "a-1:", "::1-2", "1-2",  "a:1-65536", "a:1-2-3"};
    char text[GW_SOCK_ADDR_NAME_MAX];
    for (size_t i = 0; i < GW_COUNT_OF(rows); i++) {
        assert_int_equal(gw_sock_addr_row(rows[i].name), rows[i].count);
        gw_sock_addr_row_at(rows[i].name, rows[i].count - 1, text, sizeof(text));
        assert_string_equal(text, rows[i].last);
    }
    for (size_t i = 0; i < GW_COUNT_OF(none); i++)
        assert_int_equal(gw_sock_addr_row(none[i]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sock_addr_parse__is_written_the_same),
        cmocka_unit_test(sock_addr_parse__takes_no_names),
        cmocka_unit_test(sock_addr_is_same__compares_host_and_port),
        cmocka_unit_test(sock_addr_advance__carries),
        cmocka_unit_test(sock_addr_resolve__wants_host_and_port),
        cmocka_unit_test(sock_addr_row__has_the_names_of_its_ports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
