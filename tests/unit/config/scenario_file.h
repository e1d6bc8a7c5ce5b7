/* Scenario texts for tests: written to a file, loaded, and the error that must come of it. */
#ifndef GW_TESTS_SCENARIO_FILE_H
#define GW_TESTS_SCENARIO_FILE_H

#include <stdio.h>
#include <unistd.h>

#include "support.h"

#include "base/error.h"
#include "config/scenario.h"

enum {
    SCENARIO_NAME_MAX = 64,
    OVERRIDES_MAX = 8,
};

/* A file with `text`; `name` gets its path. */
static inline void scenario_file(char name[SCENARIO_NAME_MAX], const char *text)
{
    strcpy(name, "/tmp/gradwire_test_XXXXXX.yaml");
    int fd = mkstemps(name, (int)strlen(".yaml"));
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

/* Splits "key=value" at the first '='; `copy` holds the strings. */
static inline struct gw_override scenario_override(char *copy, const char *text)
{
    strcpy(copy, text);
    char *equals = strchr(copy, '=');
    assert_non_null(equals);
    *equals = '\0';
    return (struct gw_override){.key = copy, .value = equals + 1};
}

/* Loads `text` with one override (or NULL). */
static inline int scenario_try(struct gw_scenario *scenario, const char *text, const char *set,
                               char why[GW_WHY_MAX])
{
    char name[SCENARIO_NAME_MAX], copy[256];
    struct gw_override override;
    if (set)
        override = scenario_override(copy, set);
    scenario_file(name, text);
    why[0] = '\0';
    int error = gw_scenario_load(scenario, name, set ? &override : NULL, set != NULL, why);
    unlink(name);
    return error;
}

/* Loads a text that must be good. */
static inline void scenario_load(struct gw_scenario *scenario, const char *text, const char *set)
{
    char why[GW_WHY_MAX];
    if (scenario_try(scenario, text, set, why) != GW_OK)
        fail_msg("%s", why);
}

/*
 * Loads a text that must be refused with one line that holds `why`, behind the file's name for
 * errors of the file.
 */
static inline void scenario_refused(const char *text, const char *set, const char *why)
{
    struct gw_scenario scenario;
    char said[GW_WHY_MAX];
    int error = scenario_try(&scenario, text, set, said);
    if (error >= 0 || !strstr(said, why) || strchr(said, '\n'))
        fail_msg("expected \"%s\", got %d \"%s\"", why, error, said);
    if (why[0] == ':')
        assert_int_equal(strncmp(said, "/tmp/gradwire_test_", 19), 0);
    assert_int_equal(scenario.topo.node_count, 0);
    gw_scenario_free(&scenario);
}

#endif
