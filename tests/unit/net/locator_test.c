/* Locators as bytes; what any registrar might send is in fuzz_locator_test.c. */
#include "support.h"

#include "net/locator.h"

static void locator__keeps_addresses(void **state)
{
    (void)state;
    static const char *const hosts[] = {"10.0.0.1", "fd00::1:2"};
    for (uint32_t i = 0; i < 2; i++) {
        struct gw_sock_addr addr, back;
        uint8_t bytes[GW_LOCATOR_SIZE];
        assert_int_equal(gw_sock_addr_parse(hosts[i], 4790, &addr), 0);
        gw_locator_write(&addr, bytes);
        assert_int_equal(bytes[0] << 8 | bytes[1], 4790);
        assert_true(gw_locator_read(bytes, &back));
        assert_int_equal(back.length, addr.length);
        assert_true(gw_sock_addr_is_same(&back, &addr));
    }
}

static void locator__refuses_nonsense(void **state)
{
    (void)state;
    struct gw_sock_addr addr, back;
    uint8_t good[GW_LOCATOR_SIZE], bad[GW_LOCATOR_SIZE];
    assert_int_equal(gw_sock_addr_parse("10.0.0.1", 4790, &addr), 0);
    gw_locator_write(&addr, good);
    static const struct {
        uint32_t at;
        uint32_t size;
        uint8_t value;
    } changes[] = {
        {0, GW_LOCATOR_SIZE, 0}, /* no straight way */
        {0, 2, 0},               /* no port */
        {2, 1, 5},               /* no such family */
        {3, 1, 1},               /* reserved */
        {19, 1, 1},              /* behind an IPv4 address */
    };
    for (uint32_t i = 0; i < GW_COUNT_OF(changes); i++) {
        memcpy(bad, good, sizeof(bad));
        memset(bad + changes[i].at, changes[i].value, changes[i].size);
        assert_false(gw_locator_read(bad, &back));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locator__keeps_addresses),
        cmocka_unit_test(locator__refuses_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
