/* Builds a topology of a registered kind for a test: build(&topo, "fat-tree", "k=4 tiers=3"). */
#ifndef GW_TESTS_TOPO_FIXTURE_H
#define GW_TESTS_TOPO_FIXTURE_H

#include "support.h"

#include "base/error.h"
#include "topo/topo.h"

enum {
    BUILD_WHY_MAX = 256,
};

/* Applies "name=value name=value" to the options of an algorithm. */
static inline void build_settings(const struct gw_algo *algo, void *cfg, const char *settings)
{
    char text[256], *rest = text;
    assert_true(strlen(settings) < sizeof(text));
    strcpy(text, settings);
    gw_algo_defaults(algo, cfg);
    for (char *name; (name = strtok_r(rest, " ", &rest));) {
        char *value = strchr(name, '=');
        assert_non_null(value);
        *value = '\0';
        assert_int_equal(gw_algo_set(algo, cfg, name, value + 1), GW_OK);
    }
}

/* Builds and numbers ports, without routes; returns the kind's verdict. */
static inline int build_try(struct gw_topo *topo, const char *kind, const char *settings, char *why)
{
    union gw_algo_cfg cfg;
    const struct gw_algo *algo = gw_registry_find(&gw_topo_registry, kind);
    assert_non_null(algo);
    build_settings(algo, &cfg, settings);
    gw_topo_init(topo);
    why[0] = '\0';
    int error = ((const struct gw_topo_kind *)algo)->build(topo, &cfg, why, BUILD_WHY_MAX);
    return error ? error : gw_topo_finish(topo, why, BUILD_WHY_MAX);
}

/* Builds a topology that must be possible, with routes. */
static inline void build(struct gw_topo *topo, const char *kind, const char *settings)
{
    char why[BUILD_WHY_MAX];
    assert_int_equal(build_try(topo, kind, settings, why), GW_OK);
    assert_int_equal(gw_topo_route(topo), GW_OK);
}

#endif
