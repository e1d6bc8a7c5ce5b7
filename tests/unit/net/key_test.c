/*
 * Keys: what derives from a file, so that all ends come to the same in every version; and which
 * files are refused because others may read them.
 */
#include "sim_support.h"
#include "support.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "net/key.h"

static int set_up(void **state)
{
    (void)state;
    return gw_key_setup();
}

static void assert_begins(const void *bytes, const char *hex)
{
    char text[17];
    for (size_t i = 0; i < 8; i++)
        snprintf(text + 2 * i, 3, "%02x", ((const uint8_t *)bytes)[i]);
    assert_string_equal(text, hex);
}

/* As others compute it: Argon2id with the salt "gradwire job key", 2 passes and 19 MiB, and then
 * BLAKE2b by this key, with a number as salt, for "gradwire" as person. */
static void key_from_file__is_stretched_and_divided(void **state)
{
    (void)state;
    char path[GW_TEST_PATH_MAX], error[GW_NET_ERROR_MAX];
    struct gw_key key, text;
    gw_test_write_file(path, "secret");
    assert_int_equal(gw_key_from_file(path, false, &key, error), 0);
    assert_begins(key.attach, "cb105d707fe2459b");
    assert_begins(key.jobs, "a1f24aa0145e0c92");
    assert_begins(key.packets, "684de7f290da61d7");
    assert_begins(&key.id, "63bdda214ddbb9f3");
    gw_key_from_text("secret", 6, &text);
    assert_begins(&text.id, "c52f241b08b64beb");
    assert_memory_not_equal(key.attach, text.attach, sizeof(key.attach));
    unlink(path);
}

/* The number of a job begins with bits of its key's name: those whose names differ there have no
 * number in common, and all ends come to the same one. */
static void key_job__is_of_the_key(void **state)
{
    (void)state;
    struct gw_key key, other;
    gw_key_from_text("secret", 6, &key);
    gw_key_from_text("tenant", 6, &other);
    assert_int_equal(gw_key_job(&key, "job"), 0xfc50c7eb);
    assert_int_equal((uint32_t)key.id & 0xfff, 0xfc5);
    assert_true(gw_key_has_job(&key, gw_key_job(&key, "another")));
    assert_false(gw_key_has_job(&other, gw_key_job(&key, "job")));
    assert_false(gw_key_has_job(&key, gw_key_job(&other, "job")));
}

static void key_from_file__refuses_what_others_may_read(void **state)
{
    (void)state;
    static const struct {
        mode_t mode;
        bool is_exposed;
    } cases[] = {{0600, false}, {0400, false}, {0700, false}, {0640, true}, {0660, true},
                 {0604, true},  {0644, true},  {0602, true},  {0620, true}};
    char path[GW_TEST_PATH_MAX], error[GW_NET_ERROR_MAX], mode[16], text[8];
    gw_test_write_file(path, "secret");
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        assert_int_equal(chmod(path, cases[i].mode), 0);
        assert_int_equal(gw_key_read(path, true, text, sizeof(text), error), 6);
        assert_int_equal(gw_key_read(path, false, text, sizeof(text), error),
                         cases[i].is_exposed ? GW_ERR_INVALID : 6);
        snprintf(mode, sizeof(mode), "mode %04o", (unsigned)cases[i].mode);
        if (cases[i].is_exposed && (!strstr(error, path) || !strstr(error, mode)))
            fail_msg("%s", error);
    }
    unlink(path);
}

/* A key of another owner, as systemd hands it over to a user of the service: its access list shows
 * as rights of the group. */
static void key_from_file__takes_what_was_handed_over(void **state)
{
    (void)state;
    char path[GW_TEST_PATH_MAX], error[GW_NET_ERROR_MAX], text[8];
    if (geteuid() != 0) /* nobody else can make such a file */
        skip();
    gw_test_write_file(path, "secret");
    assert_int_equal(chown(path, 65534, 65534), 0);
    assert_int_equal(chmod(path, 0440), 0);
    assert_int_equal(gw_key_read(path, false, text, sizeof(text), error), 6);
    assert_int_equal(chmod(path, 0444), 0);
    assert_int_equal(gw_key_read(path, false, text, sizeof(text), error), GW_ERR_INVALID);
    unlink(path);
}

static void key_read__has_a_limit(void **state)
{
    (void)state;
    char path[GW_TEST_PATH_MAX], error[GW_NET_ERROR_MAX], text[5];
    gw_test_write_file(path, "secret");
    assert_int_equal(gw_key_read(path, false, text, sizeof(text), error), GW_ERR_INVALID);
    assert_non_null(strstr(error, "too long"));
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(gw_key_read(path, false, text, sizeof(text), error), GW_ERR_INVALID);
    assert_non_null(strstr(error, "empty"));
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(key_from_file__is_stretched_and_divided),
        cmocka_unit_test(key_job__is_of_the_key),
        cmocka_unit_test(key_from_file__refuses_what_others_may_read),
        cmocka_unit_test(key_from_file__takes_what_was_handed_over),
        cmocka_unit_test(key_read__has_a_limit),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
