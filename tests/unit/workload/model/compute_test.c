/* Compute times of layers: exact totals, shares, floors; throughputs; bytes that travel. */
#include "unit/topo/topo_fixture.h"

#include "base/error.h"
#include "base/prng.h"
#include "workload/model/compute.h"

enum {
    SEED = 20261122,
    ROUNDS = 200,
    LAYERS_MAX = 200,
};

#define FLOOR (20 * GW_US)

static struct gw_plan_cfg cfg_of(const char *device, uint32_t batch)
{
    return (struct gw_plan_cfg){.device = device, .batch = batch, .compression = GW_Q16_ONE};
}

static void load(struct gw_model *model, const char *name)
{
    char why[512];
    if (gw_model_load(model, name, why, sizeof(why)) != GW_OK)
        fail_msg("%s", why);
}

static void make(struct gw_plan *plan, const struct gw_model *model, const struct gw_plan_cfg *cfg)
{
    char why[256];
    if (gw_plan_make(plan, model, cfg, why, sizeof(why)) != GW_OK)
        fail_msg("%s", why);
}

static void refused(const struct gw_model *model, const struct gw_plan_cfg *cfg, const char *what)
{
    struct gw_plan plan;
    char why[256] = "";
    assert_true(gw_plan_make(&plan, model, cfg, why, sizeof(why)) < 0);
    assert_null(plan.layers);
    if (strncmp(why, what, strlen(what)) != 0)
        fail_msg("said \"%s\", expected \"%s\"", why, what);
}

/* P1: what the layers take adds up to what a pass takes; tensors are the model's, in order. */
static void check_plan(const struct gw_plan *plan, const struct gw_model *model)
{
    gw_time forward = 0, backward = 0;
    uint64_t bytes = 0;
    uint32_t tensor = 0;
    assert_int_equal(plan->layer_count, model->layer_count);
    for (uint32_t l = 0; l < plan->layer_count; l++) {
        const struct gw_plan_layer *layer = &plan->layers[l];
        forward += layer->forward;
        backward += layer->backward;
        assert_int_equal(layer->first_tensor, tensor);
        assert_int_equal(layer->tensor_count,
                         (model->layers[l].weights > 0) + (model->layers[l].biases > 0));
        for (uint32_t t = 0; t < layer->tensor_count; t++, tensor++) {
            assert_int_equal(plan->tensors[tensor].layer, l);
            assert_true(plan->tensors[tensor].bytes && plan->tensors[tensor].bytes % 4 == 0);
            bytes += plan->tensors[tensor].bytes;
        }
    }
    assert_int_equal(tensor, plan->tensor_count);
    assert_int_equal(plan->tensor_count, model->tensor_count);
    assert_int_equal(forward, plan->forward);
    assert_int_equal(backward, plan->backward);
    assert_int_equal(bytes, plan->bytes);
}

static void plan_make__divides_exactly_and_above_the_floor(void **state)
{
    (void)state;
    for (const char *const *name = gw_model_names(); *name; name++) {
        struct gw_model model;
        load(&model, *name);
        for (const char *const *device = gw_compute_devices(); *device; device++) {
            struct gw_plan_cfg cfg = cfg_of(*device, 32);
            struct gw_plan plan;
            make(&plan, &model, &cfg);
            check_plan(&plan, &model);
            bool is_none = strcmp(*device, "none") == 0;
            assert_int_equal(plan.forward == 0, is_none);
            assert_in_range(2 * plan.forward + 2, plan.backward, plan.backward + 2);
            for (uint32_t l = 0; l < plan.layer_count && !is_none; l++) {
                assert_true(plan.layers[l].forward >= FLOOR);
                assert_true(plan.layers[l].backward >= 2 * FLOOR);
            }
            gw_plan_free(&plan);
        }
        gw_model_free(&model);
    }
}

/* Layers above the floor keep their proportions. */
static void plan_make__takes_the_floor_from_others_in_proportion(void **state)
{
    (void)state;
    struct gw_layer layers[] = {{.weights = 1, .macs = 0},
                                {.weights = 2, .macs = 100},
                                {.weights = 3, .macs = 300},
                                {.weights = 4, .macs = 1}};
    struct gw_model model = {.name = (char *)"hand",
                             .layers = layers,
                             .layer_count = 4,
                             .tensor_count = 4,
                             .params = 10,
                             .macs = 401};
    struct gw_plan_cfg cfg = cfg_of("none", 1);
    struct gw_plan plan;
    cfg.images_per_s = 1000 * GW_Q16_ONE / 3; /* 3 ms, and a little for the fraction */
    make(&plan, &model, &cfg);
    check_plan(&plan, &model);
    gw_time rest = plan.forward - 2 * FLOOR;
    assert_int_equal(plan.layers[0].forward, FLOOR);
    assert_int_equal(plan.layers[3].forward, FLOOR);
    assert_int_equal(plan.layers[1].forward, rest / 4);
    assert_in_range(plan.layers[2].forward, rest / 4 * 3, rest / 4 * 3 + 3);
    assert_int_equal(plan.layers[0].backward, 2 * FLOOR);
    gw_plan_free(&plan);

    /* 90 us of forward time: a quarter is above the floor, 4 x 20 us fit; 60 us: they do not. */
    cfg.images_per_s = GW_Q16_ONE * 1000000 / 270;
    make(&plan, &model, &cfg);
    check_plan(&plan, &model);
    assert_int_equal(plan.layers[1].forward, FLOOR);
    assert_in_range(plan.layers[2].forward, 30 * GW_US, 31 * GW_US);
    gw_plan_free(&plan);
    cfg.images_per_s = GW_Q16_ONE * 1000000 / 180;
    make(&plan, &model, &cfg);
    check_plan(&plan, &model);
    for (int l = 0; l < 4; l++)
        assert_in_range(plan.layers[l].forward, 15 * GW_US, 15 * GW_US + GW_NS);
    gw_plan_free(&plan);
}

static void plan_make__divides_any_model_exactly(void **state)
{
    (void)state;
    struct gw_prng prng = gw_prng_derive(SEED, 0);
    print_message("seed %d\n", SEED);
    for (int round = 0; round < ROUNDS; round++) {
        struct gw_layer layers[LAYERS_MAX];
        struct gw_model model = {.name = (char *)"random",
                                 .layers = layers,
                                 .layer_count = 1 + gw_prng_below(&prng, LAYERS_MAX)};
        for (uint32_t l = 0; l < model.layer_count; l++) {
            layers[l] = (struct gw_layer){.weights = gw_prng_below(&prng, 3),
                                          .biases = gw_prng_below(&prng, 100),
                                          .macs = gw_prng_next(&prng) % UINT64_C(10000000000000) >>
                                                  gw_prng_below(&prng, 45)};
            model.tensor_count += (layers[l].weights > 0) + (layers[l].biases > 0);
            model.params += layers[l].weights + layers[l].biases;
            model.macs += layers[l].macs;
        }
        struct gw_plan_cfg cfg = cfg_of("none", 1 + gw_prng_below(&prng, 512));
        struct gw_plan plan;
        cfg.images_per_s = GW_Q16_ONE + gw_prng_below(&prng, 1u << 30);
        cfg.compression = GW_Q16_ONE / 16 + gw_prng_below(&prng, 60000);
        make(&plan, &model, &cfg);
        check_plan(&plan, &model);
        gw_plan_free(&plan);
    }
}

static void compute_rate__is_the_tables_or_derived(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        const char *device;
        double per_s;
    } known[] = {
        {"resnet50", "2080Ti", 294},
        {"resnet50", "V100", 405},
        {"vgg16", "2080Ti", 170},
        {"resnet18", "2080Ti", 294 * 4.089184256 / 1.814073344},
        {"vgg19", "V100", 235 * 15.47026432 / 19.632062464},
        {"googlenet", "2080Ti", 194 * 5.713216096 / 1.582671872},
        {"bert_large", "V100", 37 * 35.33340672 / 123.21292288},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct gw_model model;
        gw_q16 rate;
        char why[256];
        load(&model, known[i].model);
        assert_int_equal(gw_compute_rate(&rate, &model, known[i].device, why, sizeof(why)), 0);
        assert_true(rate / 65536.0 > known[i].per_s - 0.001);
        assert_true(rate / 65536.0 < known[i].per_s + 0.001);
        gw_model_free(&model);
    }
}

static void plan_make__takes_batch_over_throughput(void **state)
{
    (void)state;
    struct gw_model model;
    struct gw_plan plan;
    struct gw_plan_cfg cfg = cfg_of("2080Ti", 32);
    load(&model, "resnet50");
    make(&plan, &model, &cfg);
    assert_int_equal(plan.forward + plan.backward, 108843537415); /* 32 / 294 s */
    assert_int_equal(plan.bytes, 4 * model.params);
    gw_plan_free(&plan);
    cfg.images_per_s = 37 * GW_Q16_ONE + GW_Q16_ONE / 2;
    make(&plan, &model, &cfg);
    assert_int_equal(plan.forward + plan.backward, 853333333333);
    gw_plan_free(&plan);
    gw_model_free(&model);
}

static void plan_make__compresses_to_whole_elements(void **state)
{
    (void)state;
    struct gw_layer layers[] = {{.weights = 1, .biases = 17}, {.weights = 160}, {.biases = 3}};
    struct gw_model model = {.name = (char *)"hand",
                             .layers = layers,
                             .layer_count = 3,
                             .tensor_count = 4,
                             .params = 181};
    static const struct {
        gw_q16 part;
        uint64_t bytes[4];
    } known[] = {
        {GW_Q16_ONE, {4, 68, 640, 12}},
        {GW_Q16_ONE / 4, {4, 20, 160, 4}},
        {GW_Q16_ONE / 16, {4, 8, 40, 4}},
    };
    for (int i = 0; i < 3; i++) {
        struct gw_plan plan;
        struct gw_plan_cfg cfg = cfg_of("none", 1);
        cfg.compression = known[i].part;
        make(&plan, &model, &cfg);
        check_plan(&plan, &model);
        for (int t = 0; t < 4; t++)
            assert_int_equal(plan.tensors[t].bytes, known[i].bytes[t]);
        gw_plan_free(&plan);
    }
}

static void plan_make__refuses_what_makes_no_sense(void **state)
{
    (void)state;
    struct gw_model model;
    struct gw_plan_cfg cfg = cfg_of("2080Ti", 0);
    load(&model, "alexnet");
    refused(&model, &cfg, "batch must be from 1 to 65536, not 0");
    cfg = cfg_of("3090", 32);
    refused(&model, &cfg, "device: unknown: 3090; expected 2080Ti, V100, none");
    cfg = cfg_of("none", 32);
    cfg.compression = GW_Q16_ONE / 16 - 1;
    refused(&model, &cfg, "compression must be from 0.0625");
    cfg.compression = GW_Q16_ONE + 1;
    refused(&model, &cfg, "compression must be from 0.0625");
    cfg = cfg_of("none", 65536);
    cfg.images_per_s = -1;
    refused(&model, &cfg, "images_per_s must not be negative");
    cfg.images_per_s = 1;
    refused(&model, &cfg, "images_per_s: 65536 of alexnet take longer than an hour");
    gw_model_free(&model);

    struct gw_layer layer = {.weights = 5};
    struct gw_model own = {.name = (char *)"own.csv",
                           .layers = &layer,
                           .layer_count = 1,
                           .tensor_count = 1,
                           .params = 5};
    struct gw_plan plan;
    cfg = cfg_of("V100", 32);
    refused(&own, &cfg, "device: own.csv has no macs");
    cfg.images_per_s = GW_Q16_ONE; /* then its speed is known */
    make(&plan, &own, &cfg);
    check_plan(&plan, &own);
    gw_plan_free(&plan);
}

static void plan_single__takes_no_time(void **state)
{
    (void)state;
    struct gw_plan plan;
    gw_plan_single(&plan, 4000);
    assert_int_equal(plan.layer_count, 1);
    assert_int_equal(plan.layers[0].tensor_count, 1);
    assert_int_equal(plan.tensor_count, 1);
    assert_int_equal(plan.tensors[0].bytes, 4000);
    assert_int_equal(plan.bytes, 4000);
    assert_int_equal(plan.forward + plan.backward + plan.layers[0].forward, 0);
    gw_plan_free(&plan);
    assert_null(plan.layers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plan_make__divides_exactly_and_above_the_floor),
        cmocka_unit_test(plan_make__takes_the_floor_from_others_in_proportion),
        cmocka_unit_test(plan_make__divides_any_model_exactly),
        cmocka_unit_test(compute_rate__is_the_tables_or_derived),
        cmocka_unit_test(plan_make__takes_batch_over_throughput),
        cmocka_unit_test(plan_make__compresses_to_whole_elements),
        cmocka_unit_test(plan_make__refuses_what_makes_no_sense),
        cmocka_unit_test(plan_single__takes_no_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
