/* Runs a workload kind for a test, and files for those that read one. */
#ifndef GW_TESTS_WORKLOAD_FIXTURE_H
#define GW_TESTS_WORKLOAD_FIXTURE_H

#include <stdio.h>
#include <unistd.h>

#include "unit/topo/topo_fixture.h"

#include "workload/workload.h"

/* The flows of one kind, and what it said when it refused. */
struct generated {
    struct gw_workload workload;
    char why[BUILD_WHY_MAX];
    int error;
};

static inline void generate_in(struct generated *generated, const struct gw_topo *topo,
                               const char *kind, const char *settings, uint64_t seed,
                               const char *directory)
{
    union gw_algo_cfg cfg;
    const struct gw_algo *algo = gw_registry_find(&gw_workload_registry, kind);
    assert_non_null(algo);
    assert_true(algo->cfg_size <= GW_ALGO_CFG_MAX);
    build_settings(algo, &cfg, settings);
    generated->why[0] = '\0';
    gw_workload_init(&generated->workload);
    struct gw_workload_ctx ctx = {.topo = topo,
                                  .directory = directory,
                                  .prng = {.state = seed},
                                  .why = generated->why,
                                  .why_size = sizeof(generated->why)};
    generated->error =
        ((const struct gw_workload_kind *)algo)->generate(&generated->workload, &cfg, &ctx);
}

static inline void generate(struct generated *generated, const struct gw_topo *topo,
                            const char *kind, const char *settings, uint64_t seed)
{
    generate_in(generated, topo, kind, settings, seed, ".");
}

/* The kind must refuse, with a sentence that begins with `why`. */
static inline void generate_refused(const struct gw_topo *topo, const char *kind,
                                    const char *settings, const char *why)
{
    struct generated generated;
    generate(&generated, topo, kind, settings, 1);
    assert_true(generated.error < 0);
    if (strncmp(generated.why, why, strlen(why)) != 0)
        fail_msg("%s: said \"%s\"", settings, generated.why);
    gw_workload_fini(&generated.workload);
}

/* A file with `text`; `name` gets its path, which is short enough for a setting. */
static inline void generate_file(char name[32], const char *text)
{
    strcpy(name, "/tmp/gradwire_test_XXXXXX");
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

#endif
