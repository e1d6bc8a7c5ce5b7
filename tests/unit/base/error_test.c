/* Every error code is negative and has a message of its own. */
#include "support.h"

#include "base/error.h"

static void error_message__is_distinct_for_each_code(void **state)
{
    static const int codes[] = {
#define CODE(name, code, message) GW_ERR_##name,
        GW_ERROR_MAP(CODE)
#undef CODE
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(codes); i++) {
        assert_true(codes[i] < 0);
        assert_string_not_equal(gw_error_message(codes[i]), gw_error_message(GW_OK));
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(gw_error_message(codes[i]), gw_error_message(codes[j]));
    }
}

static void error_message__never_is_null(void **state)
{
    (void)state;
    assert_string_equal(gw_error_message(GW_OK), "success");
    assert_string_equal(gw_error_message(1), "unknown error");
    assert_string_equal(gw_error_message(-1000), "unknown error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_message__is_distinct_for_each_code),
        cmocka_unit_test(error_message__never_is_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
