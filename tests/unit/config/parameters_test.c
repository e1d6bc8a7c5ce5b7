/*
 * What parameters take, over all registries: each takes its limits and nothing beyond them, and
 * none takes less than nothing but those that say why.
 */
#include "support.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/fixed.h"
#include "config/scenario.h"
#include "core/cc/cc.h"
#include "core/coll/coll.h"
#include "core/finish/finish.h"
#include "core/grant/grant.h"
#include "core/lb/lb.h"
#include "core/loss/loss.h"
#include "core/qdisc/qdisc.h"
#include "core/urgency/urgency.h"
#include "topo/topo.h"
#include "workload/schedule/schedule.h"
#include "workload/workload.h"

typedef void (*param_check)(const struct gw_algo *algo, const struct gw_param *param);

static void each_of_algo(const struct gw_algo *algo, param_check check)
{
    for (uint32_t i = 0; i < algo->param_count; i++)
        check(algo, &algo->params[i]);
}

static void each_param(param_check check)
{
    static const struct gw_registry *const registries[] = {
        &gw_cc_registry,    &gw_coll_registry,     &gw_cost_registry,     &gw_finish_registry,
        &gw_grant_registry, &gw_lb_registry,       &gw_loss_registry,     &gw_qdisc_registry,
        &gw_topo_registry,  &gw_schedule_registry, &gw_workload_registry, &gw_urgency_registry,
    };
    for (size_t r = 0; r < GW_COUNT_OF(registries); r++)
        for (uint32_t i = 0; i < registries[r]->count; i++)
            each_of_algo(registries[r]->algos[i], check);
    for (uint32_t i = 0; i < gw_workload_registry.count; i++) {
        const struct gw_workload_kind *kind = (const void *)gw_workload_registry.algos[i];
        if (kind->item)
            each_of_algo(kind->item, check);
    }
}

static const char *unit_of(const struct gw_param *param)
{
    static const char *const units[] = {
        [GW_PARAM_TIME] = "ps",  [GW_PARAM_BYTES] = "B", [GW_PARAM_RATE] = "bps",
        [GW_PARAM_COUNT] = "",   [GW_PARAM_Q16] = "",    [GW_PARAM_BOOL] = NULL,
        [GW_PARAM_SIZES] = NULL, [GW_PARAM_ENUM] = NULL, [GW_PARAM_TEXT] = NULL,
    };
    return units[param->type];
}

static void expect(const struct gw_algo *algo, const struct gw_param *param, const char *text,
                   int error)
{
    union gw_algo_cfg cfg;
    gw_algo_defaults(algo, &cfg);
    int said = gw_algo_set(algo, &cfg, param->name, text);
    if (said != error)
        fail_msg("%s %s=%s: %d instead of %d", algo->name, param->name, text, said, error);
}

/* A value in units of the field. */
static void expect_number(const struct gw_algo *algo, const struct gw_param *param, int64_t value,
                          int error)
{
    char text[64];
    uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value;
    if (param->type == GW_PARAM_Q16)
        snprintf(text, sizeof(text), "%s%" PRIu64 ".%09" PRIu64, value < 0 ? "-" : "", size >> 16,
                 ((size & 0xffff) * 1000000000 + 0x8000) >> 16);
    else
        snprintf(text, sizeof(text), "%s%" PRIu64 "%s", value < 0 ? "-" : "", size, unit_of(param));
    expect(algo, param, text, error);
}

static void check_limits(const struct gw_algo *algo, const struct gw_param *param)
{
    if (!unit_of(param)) {
        assert_true(param->least == 0 && param->most == 0);
        return;
    }
    if (param->least || param->type != GW_PARAM_RATE)
        expect_number(algo, param, param->least, GW_OK);
    expect_number(algo, param, param->least - 1, GW_ERR_RANGE);
    if (!param->most)
        return;
    assert_true(param->most > param->least);
    expect_number(algo, param, param->most, GW_OK);
    expect_number(algo, param, param->most + 1, GW_ERR_RANGE);
}

static void parameters__keep_to_their_limits(void **state)
{
    (void)state;
    each_param(check_limits);
}

/* Thresholds may fall from class to class: the rest is counts, parts, multiples and times. */
static void check_sign(const struct gw_algo *algo, const struct gw_param *param)
{
    bool may_fall = strcmp(algo->name, "dlcp") == 0 && strcmp(param->name, "step") == 0 &&
                    gw_registry_find(&gw_qdisc_registry, "dlcp") == algo;
    if (unit_of(param))
        assert_int_equal(param->least < 0, may_fall);
}

static void parameters__are_not_negative_without_a_reason(void **state)
{
    (void)state;
    each_param(check_sign);
}

/* The limits that a parameter's help names are those that it keeps. */
static void check_help(const struct gw_algo *algo, const struct gw_param *param)
{
    const char *to = strstr(param->help, "1 to 65536");
    if (param->type != GW_PARAM_COUNT || !to)
        return;
    if (param->least != 1 || param->most != 65536)
        fail_msg("%s %s: its help says 1 to 65536", algo->name, param->name);
}

static void parameters__keep_to_what_their_help_says(void **state)
{
    (void)state;
    each_param(check_help);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters__keep_to_their_limits),
        cmocka_unit_test(parameters__are_not_negative_without_a_reason),
        cmocka_unit_test(parameters__keep_to_what_their_help_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
