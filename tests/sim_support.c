/* Runs of the simulator for tests; see sim_support.h. */
#include "sim_support.h"

#include <stdio.h>
#include <unistd.h>

#include "support.h"

enum {
    OVERRIDES_MAX = 24,
    TEXT_MAX = 1024,
};

void gw_test_write_file(char path[GW_TEST_PATH_MAX], const char *text)
{
    strcpy(path, "/tmp/gradwire_test_XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

/* Splits "key=value; key=value" in place. */
static uint32_t split_overrides(char *text, struct gw_override overrides[OVERRIDES_MAX])
{
    uint32_t count = 0;
    for (char *rest, *item = strtok_r(text, ";", &rest); item; item = strtok_r(NULL, ";", &rest)) {
        item += strspn(item, " ");
        char *equals = strchr(item, '=');
        assert_non_null(equals);
        assert_true(count < OVERRIDES_MAX);
        *equals = '\0';
        overrides[count++] = (struct gw_override){.key = item, .value = equals + 1};
    }
    return count;
}

static void open_with(struct gw_test_sim *run, const struct gw_sim_options *options,
                      const char *scenario, char *set)
{
    char why[GW_WHY_MAX] = "", path[GW_TEST_PATH_MAX];
    struct gw_override overrides[OVERRIDES_MAX];
    uint32_t count = split_overrides(set, overrides);
    bool is_text = strchr(scenario, '\n') != NULL;
    if (is_text)
        gw_test_write_file(path, scenario);
    else
        snprintf(path, sizeof(path), "%s/%s", GW_SOURCE_DIR, scenario);
    *run = (struct gw_test_sim){.sim = NULL};
    int error = gw_scenario_load(&run->scenario, path, overrides, count, why);
    if (is_text)
        unlink(path);
    struct gw_sim_options own = *options;
    own.pcap_link = run->scenario.metrics.pcap_link;
    if (!error)
        error = gw_sim_open(&run->sim, &run->scenario, &own, why);
    if (error)
        fail_msg("%s", why);
}

void gw_test_sim_open(struct gw_test_sim *run, const struct gw_sim_options *options,
                      const char *scenario, const char *set, ...)
{
    char text[TEXT_MAX];
    va_list args;
    va_start(args, set);
    assert_true(vsnprintf(text, sizeof(text), set, args) < TEXT_MAX);
    va_end(args);
    open_with(run, options, scenario, text);
}

void gw_test_sim_finish(struct gw_test_sim *run)
{
    char why[GW_WHY_MAX] = "";
    if (gw_sim_run(run->sim, why) != 0)
        fail_msg("%s", why);
    run->totals = gw_sim_totals(run->sim);
    run->flows = gw_sim_flows(run->sim);
}

void gw_test_sim_run(struct gw_test_sim *run, const struct gw_sim_options *options,
                     const char *scenario, const char *set, ...)
{
    char text[TEXT_MAX];
    va_list args;
    va_start(args, set);
    assert_true(vsnprintf(text, sizeof(text), set, args) < TEXT_MAX);
    va_end(args);
    open_with(run, options, scenario, text);
    gw_test_sim_finish(run);
}

void gw_test_sim_close(struct gw_test_sim *run)
{
    gw_sim_close(run->sim);
    gw_scenario_free(&run->scenario);
}

gw_time gw_test_exact_time(uint64_t bytes, uint64_t rate_bps)
{
    const uint64_t ps_bits = UINT64_C(8000000000000); /* bits of a byte times ps of a second */
    assert_int_equal(bytes * ps_bits % rate_bps, 0);
    return bytes * ps_bits / rate_bps;
}
