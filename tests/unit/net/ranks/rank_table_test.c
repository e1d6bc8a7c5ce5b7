/* Entries of the table of ranks as bytes; what any rank 0 might send is in fuzz_rank_table_test.c.
 */
#include "support.h"

#include "core/notice.h"
#include "net/ranks/rank_table.h"

static void rank_table__keeps_addresses(void **state)
{
    (void)state;
    static const char *const hosts[] = {"10.0.0.1", "fd00::1:2"};
    for (uint32_t i = 0; i < 2; i++) {
        struct gw_rank_table_entry entry = {.address = 0x12345678}, back;
        uint8_t bytes[GW_RANK_TABLE_ENTRY_SIZE];
        assert_int_equal(gw_sock_addr_parse(hosts[i], 4790, &entry.addr), 0);
        gw_rank_table_write(&entry, bytes);
        assert_int_equal(bytes[0], 0x12);
        assert_int_equal(bytes[4] << 8 | bytes[5], 4790);
        assert_true(gw_rank_table_read(bytes, &back));
        assert_int_equal(back.address, entry.address);
        assert_int_equal(back.addr.length, entry.addr.length);
        assert_true(gw_sock_addr_is_same_host(&back.addr, &entry.addr));
        assert_int_equal(gw_sock_addr_port(&back.addr), 4790);
    }
}

static void rank_table__keeps_the_threshold(void **state)
{
    (void)state;
    for (uint8_t units = 0; units <= GW_NOTICE_UNITS_MAX + 1; units++) {
        uint8_t bytes[GW_RANK_TABLE_ENTRY_SIZE], back;
        gw_rank_table_write_notice(units, bytes);
        assert_int_equal(gw_rank_table_read_notice(bytes, &back), units <= GW_NOTICE_UNITS_MAX);
        assert_int_equal(back, units);
        bytes[1] = 1;
        assert_false(gw_rank_table_read_notice(bytes, &back));
    }
}

static void rank_table__refuses_nonsense(void **state)
{
    (void)state;
    struct gw_rank_table_entry entry = {.address = 1}, back;
    uint8_t good[GW_RANK_TABLE_ENTRY_SIZE], bad[GW_RANK_TABLE_ENTRY_SIZE];
    assert_int_equal(gw_sock_addr_parse("10.0.0.1", 4790, &entry.addr), 0);
    gw_rank_table_write(&entry, good);
    static const struct {
        uint32_t at;
        uint32_t size;
        uint8_t value;
    } changes[] = {
        {0, 4, 0},  /* no address */
        {4, 2, 0},  /* no port */
        {6, 1, 5},  /* no such family */
        {7, 1, 1},  /* reserved */
        {23, 1, 1}, /* behind an IPv4 address */
    };
    for (uint32_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        memcpy(bad, good, sizeof(bad));
        memset(bad + changes[i].at, changes[i].value, changes[i].size);
        assert_false(gw_rank_table_read(bad, &back));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rank_table__keeps_addresses),
        cmocka_unit_test(rank_table__keeps_the_threshold),
        cmocka_unit_test(rank_table__refuses_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
