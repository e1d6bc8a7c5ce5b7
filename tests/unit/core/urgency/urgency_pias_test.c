/* PIAS' thresholds: which packet falls into which class, and where the presets come from. */
#include "support.h"

#include <stdio.h>

#include "core/pkt.h"
#include "core/urgency/urgency.h"
#include "workload/model/model.h"

static void open_pias(union gw_algo_cfg *cfg, const char *preset)
{
    const struct gw_algo *algo = gw_registry_find(&gw_urgency_registry, "pias");
    gw_algo_defaults(algo, cfg);
    if (preset)
        assert_int_equal(gw_algo_preset(algo, cfg, preset), 0);
}

static uint8_t class_at(const union gw_algo_cfg *cfg, uint64_t sent)
{
    const struct gw_urgency_ops *ops = (const void *)gw_registry_find(&gw_urgency_registry, "pias");
    /* The class that the message was given makes no difference. */
    struct gw_urgency_sample sample = {.bytes = UINT64_MAX, .sent = sent, .remains = 1, .class = 3};
    struct gw_urgency urgency = ops->pick(cfg, &sample);
    assert_int_equal(urgency.rank, 0);
    return urgency.class;
}

/* What begins at a threshold is beyond it, so a message of th0 bytes keeps the first class. */
static void pias_pick__falls_by_one_at_each_threshold(void **state)
{
    static const uint64_t thresholds[] = {1327140, 1940340, 2406080, 2861600, 3128780, 3412020};
    (void)state;
    union gw_algo_cfg cfg;
    open_pias(&cfg, NULL);
    assert_int_equal(class_at(&cfg, 0), GW_CLASS_DATA_MAX);
    for (uint32_t i = 0; i < GW_COUNT_OF(thresholds); i++) {
        assert_int_equal(class_at(&cfg, thresholds[i] - 1), GW_CLASS_DATA_MAX - i);
        assert_int_equal(class_at(&cfg, thresholds[i]), GW_CLASS_DATA_MAX - i - 1);
    }
    assert_int_equal(class_at(&cfg, UINT64_MAX), GW_CLASS_BEST_EFFORT);
}

static void pias_pick__stops_at_the_last_threshold(void **state)
{
    (void)state;
    union gw_algo_cfg cfg;
    open_pias(&cfg, "kernel");
    assert_int_equal(class_at(&cfg, 102399), GW_CLASS_DATA_MAX);
    assert_int_equal(class_at(&cfg, 102400), GW_CLASS_DATA_MAX - 1);
    assert_int_equal(class_at(&cfg, UINT64_MAX), GW_CLASS_DATA_MAX - 1);
    const struct gw_algo *algo = gw_registry_find(&gw_urgency_registry, "pias");
    assert_int_equal(gw_algo_set(algo, &cfg, "th0", "0"), 0);
    assert_int_equal(class_at(&cfg, UINT64_MAX), GW_CLASS_DATA_MAX);
}

/* Bytes of tensors that are sent before their message has sent `age`. */
static uint64_t bytes_before(const struct gw_model *model, uint64_t age)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < model->layer_count; i++) {
        uint64_t weights = 4 * model->layers[i].weights, biases = 4 * model->layers[i].biases;
        sum += weights < age ? weights : age;
        sum += biases < age ? biases : age;
    }
    return sum;
}

/* The presets of models give each of the seven classes the same number of bytes, to a hundredth. */
static void pias_preset__divides_a_models_bytes_evenly(void **state)
{
    static const struct {
        const char *preset, *model;
    } cases[] = {{"resnet50", "resnet50"}, {"inception-v3", "inception_v3"}};
    (void)state;
    for (uint32_t c = 0; c < GW_COUNT_OF(cases); c++) {
        struct gw_model model;
        union gw_algo_cfg cfg;
        char why[256];
        assert_int_equal(gw_model_load(&model, cases[c].model, why, sizeof(why)), 0);
        open_pias(&cfg, cases[c].preset);
        uint64_t all = bytes_before(&model, UINT64_MAX), before = 0;
        for (uint32_t i = 0; i <= GW_CLASS_DATA_MAX; i++) {
            uint64_t age = before; /* the first at which the class has changed */
            for (uint64_t step = UINT64_C(1) << 40; step; step /= 2)
                if (class_at(&cfg, age + step) >= GW_CLASS_DATA_MAX - i)
                    age += step;
            uint64_t share = bytes_before(&model, age + 1) - bytes_before(&model, before);
            assert_in_range(share, all / 7 - all / 700, all / 7 + all / 700);
            before = age + 1;
        }
        gw_model_free(&model);
    }
}

/* Every preset uses as many classes as it says, one after the other: none is passed by. */
static void pias_preset__uses_its_classes_in_turn(void **state)
{
    (void)state;
    const struct gw_algo *algo = gw_registry_find(&gw_urgency_registry, "pias");
    assert_true(algo->preset_count > 0);
    for (uint32_t p = 0; p < algo->preset_count; p++) {
        union gw_algo_cfg cfg;
        const char *name = algo->presets[p].name;
        uint8_t last = strcmp(name, "kernel") == 0 ? GW_CLASS_DATA_MAX - 1 : GW_CLASS_BEST_EFFORT;
        open_pias(&cfg, name);
        uint8_t class = class_at(&cfg, 0);
        assert_int_equal(class, GW_CLASS_DATA_MAX);
        for (uint64_t sent = 0; sent < 10000000; sent += 1000) {
            uint8_t next = class_at(&cfg, sent);
            assert_in_range(next, class > 0 ? class - 1 : 0, class);
            class = next;
        }
        assert_int_equal(class, last);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pias_pick__falls_by_one_at_each_threshold),
        cmocka_unit_test(pias_pick__stops_at_the_last_threshold),
        cmocka_unit_test(pias_preset__divides_a_models_bytes_evenly),
        cmocka_unit_test(pias_preset__uses_its_classes_in_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
