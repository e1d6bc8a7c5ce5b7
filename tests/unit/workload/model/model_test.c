/* The project's tables against published counts, and what is said of a user's broken one. */
#include "unit/workload/workload_fixture.h"

#include "base/error.h"
#include "workload/model/model.h"

/*
 * Parameters and GMACs of the models that torchvision has: `num_params` and `_ops` (multiply-adds,
 * called GFLOPS in its pages, in thousandths here) of each model's IMAGENET1K_V1 weights in
 * torchvision 0.28; its Inception-v3 counts the parameters of the auxiliary head, but not its MACs.
 * BERT: parameters of the uncased models with pooler that its authors published. GoogLeNet: the
 * layers of the paper's table 1, with biases; DLCP has 6.8 million. Transformer: table 3 of its
 * paper has 65 million. What no page states is the sum over the architecture: the GMACs of these
 * three and of the auxiliary head, and the tensors.
 */
static const struct published {
    const char *name;
    uint32_t tensors;
    uint64_t params;
    uint32_t gmacs; /* in thousandths */
} PUBLISHED[] = {
    {"alexnet", 16, 61100840, 714},
    {"bert_base", 199, 109482240, 35333},
    {"bert_large", 391, 335141888, 123213},
    {"googlenet", 116, 6998552, 1583},
    {"inception_v3", 284, 23834568, 5713},
    {"inception_v3_aux", 292, 27161264, 5719},
    {"resnet101", 314, 44549160, 7801},
    {"resnet152", 467, 60192808, 11514},
    {"resnet18", 62, 11689512, 1814},
    {"resnet34", 110, 21797672, 3664},
    {"resnet50", 161, 25557032, 4089},
    {"transformer_base", 181, 63045632, 4106},
    {"vgg11", 22, 132863336, 7609},
    {"vgg13", 26, 133047848, 11308},
    {"vgg16", 32, 138357544, 15470},
    {"vgg19", 38, 143667240, 19632},
    {"wide_resnet101_2", 314, 126886696, 22753},
    {"wide_resnet50_2", 161, 68883240, 11398},
};

static void model_load__has_the_published_counts(void **state)
{
    (void)state;
    const char *const *names = gw_model_names();
    for (size_t i = 0; i < sizeof(PUBLISHED) / sizeof(PUBLISHED[0]); i++) {
        const struct published *known = &PUBLISHED[i];
        struct gw_model model;
        char why[BUILD_WHY_MAX] = "";
        assert_non_null(names[i]);
        assert_string_equal(names[i], known->name);
        assert_int_equal(gw_model_load(&model, known->name, why, sizeof(why)), GW_OK);
        assert_string_equal(model.name, known->name);
        assert_int_equal(model.params, known->params);
        assert_int_equal(model.tensor_count, known->tensors);
        assert_int_equal((model.macs + 500000) / 1000000, known->gmacs);
        uint64_t params = 0, macs = 0;
        uint32_t tensors = 0;
        for (uint32_t l = 0; l < model.layer_count; l++) {
            const struct gw_layer *layer = &model.layers[l];
            params += layer->weights + layer->biases;
            macs += layer->macs;
            tensors += (layer->weights > 0) + (layer->biases > 0);
            bool is_norm = strcmp(layer->kind, "bn") == 0 || strcmp(layer->kind, "ln") == 0;
            if (is_norm) /* scale and shift are two tensors, and equally large */
                assert_true(layer->weights > 0 && layer->weights == layer->biases && !layer->macs);
        }
        assert_true(params == model.params && macs == model.macs && tensors == model.tensor_count);
        gw_model_free(&model);
    }
    assert_null(names[sizeof(PUBLISHED) / sizeof(PUBLISHED[0])]);
}

/* Key layers of the papers' tables, from the front to the back. */
static void model_load__has_the_layers_in_order(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        const char *layer;
        uint32_t at;
        uint64_t params;
    } known[] = {
        {"vgg16", "conv1", 0, 1792},          {"vgg16", "conv8", 7, 1180160},
        {"vgg16", "conv13", 12, 2359808},     {"vgg16", "fc6", 13, 102764544},
        {"vgg16", "fc8", 15, 4097000},        {"alexnet", "conv1", 0, 23296},
        {"alexnet", "fc6", 5, 37752832},      {"resnet50", "conv1", 0, 9408},
        {"resnet50", "conv1.bn", 1, 128},     {"resnet50", "fc", 106, 2049000},
        {"inception_v3", "fc", 188, 2049000},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct gw_model model;
        char why[BUILD_WHY_MAX];
        assert_int_equal(gw_model_load(&model, known[i].model, why, sizeof(why)), GW_OK);
        const struct gw_layer *layer = &model.layers[known[i].at];
        assert_string_equal(layer->name, known[i].layer);
        assert_int_equal(layer->weights + layer->biases, known[i].params);
        gw_model_free(&model);
    }
}

static int load_text(struct gw_model *model, char name[40], const char *text, char *why)
{
    char made[32];
    generate_file(made, text);
    snprintf(name, 40, "%s.csv", made);
    assert_int_equal(rename(made, name), 0);
    int error = gw_model_load(model, name, why, BUILD_WHY_MAX);
    unlink(name);
    return error;
}

static void model_load__reads_a_file(void **state)
{
    (void)state;
    struct gw_model model;
    char name[40], why[BUILD_WHY_MAX] = "";
    int error = load_text(&model, name,
                          "# two layers\n\nlayer,kind,weights,biases,macs\r\n"
                          "first , conv,10, 0,500\r\n  # between\nsecond,,3,4,0",
                          why);
    assert_string_equal(why, "");
    assert_int_equal(error, GW_OK);
    assert_string_equal(model.name, strrchr(name, '/') + 1);
    assert_int_equal(model.layer_count, 2);
    assert_string_equal(model.layers[0].name, "first");
    assert_string_equal(model.layers[0].kind, "conv");
    assert_int_equal(model.layers[0].macs, 500);
    assert_int_equal(model.layers[1].biases, 4);
    assert_int_equal(model.tensor_count, 3);
    assert_int_equal(model.params, 17);
    gw_model_free(&model);
}

static void model_load__names_file_and_line_of_an_error(void **state)
{
    (void)state;
#define HEADER "layer,kind,weights,biases,macs\n"
    static const struct {
        const char *text;
        const char *why; /* after the name of the file */
    } broken[] = {
        {"", ": the file is empty; the first line must be layer,kind"},
        {"\n# only this\nname,params\n", ":3: the first line must be layer,kind"},
        {HEADER, ": no layer has parameters"},
        {HEADER "a,attn,0,0,5\n", ": no layer has parameters"},
        {HEADER "a,conv,1,0\n", ":2: has 4 columns instead of 5"},
        {HEADER "a,conv,1,0,3,4\n", ":2: has 6 columns instead of 5"},
        {HEADER "a,conv,1,0,3\nb,conv,many,0,3\n",
         ":3: weights must be a whole number up to 1000000000000, not 'many'"},
        {HEADER "a,conv,1,-1,3\n",
         ":2: biases must be a whole number up to 1000000000000, not '-1'"},
        {HEADER "a,conv,1,,3\n", ":2: biases must be a whole number up to 1000000000000, not ''"},
        {HEADER "a,conv,1,0,1e9\n",
         ":2: macs must be a whole number up to 1000000000000000, not '1e9'"},
        {HEADER ",conv,1,0,3\n", ":2: layer: missing"},
        {HEADER "a,conv,1000000000001,0,3\n",
         ":2: weights must be a whole number up to 1000000000000, not "},
        {HEADER "a,conv,99999999999999999999,0,3\n",
         ":2: weights must be a whole number up to 1000000000000, not "},
        {HEADER "a,fc,1000000000000,0,3\nb,fc,0,1,0\n",
         ":3: the layers up to here have more than 10^12 parameters"},
        {HEADER "a,fc,1,0,1000000000000000\nb,fc,1,1,1\n",
         ":3: the layers up to here have more than 10^15 macs"},
    };
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        struct gw_model model;
        char name[40], why[BUILD_WHY_MAX] = "";
        assert_true(load_text(&model, name, broken[i].text, why) < 0);
        assert_null(model.layers);
        if (strncmp(why, name, strlen(name)) != 0 ||
            strncmp(why + strlen(name), broken[i].why, strlen(broken[i].why)) != 0)
            fail_msg("said \"%s\", expected \"%s\"", why, broken[i].why);
    }
}

static void model_load__limits_lines_and_layers(void **state)
{
    (void)state;
    struct gw_model model;
    char name[40], why[BUILD_WHY_MAX], expected[120];
    size_t room = 200000;
    char *text = malloc(room);
    assert_non_null(text);
    memset(text, 'x', 600);
    text[600] = '\0';
    assert_true(load_text(&model, name, text, why) < 0);
    snprintf(expected, sizeof(expected), "%s:1: the line is longer than 511 characters", name);
    assert_string_equal(why, expected);
    size_t used = (size_t)snprintf(text, room, HEADER);
    for (int i = 0; i <= 10000; i++)
        used += (size_t)snprintf(text + used, room - used, "a,fc,1,0,1\n");
    assert_true(load_text(&model, name, text, why) < 0);
    snprintf(expected, sizeof(expected), "%s:10002: more than 10000 layers", name);
    assert_string_equal(why, expected);
    free(text);
}

static void model_load__refuses_what_is_not_there(void **state)
{
    (void)state;
    struct gw_model model;
    char why[2 * BUILD_WHY_MAX];
    assert_int_equal(gw_model_load(&model, "resnet51", why, sizeof(why)), GW_ERR_UNKNOWN);
    assert_non_null(
        strstr(why, "unknown model: resnet51; expected a file *.csv or one of alexnet, "));
    assert_non_null(strstr(why, "wide_resnet50_2"));
    assert_true(gw_model_load(&model, "/no/such.csv", why, sizeof(why)) < 0);
    assert_string_equal(why, "/no/such.csv: No such file or directory");
    assert_true(gw_model_load(&model, "/tmp/.csv", why, sizeof(why)) < 0);
    char little[16];
    assert_int_equal(gw_model_load(&model, "resnet51", little, sizeof(little)), GW_ERR_UNKNOWN);
    assert_string_equal(little, "unknown model: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(model_load__has_the_published_counts),
        cmocka_unit_test(model_load__has_the_layers_in_order),
        cmocka_unit_test(model_load__reads_a_file),
        cmocka_unit_test(model_load__names_file_and_line_of_an_error),
        cmocka_unit_test(model_load__limits_lines_and_layers),
        cmocka_unit_test(model_load__refuses_what_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
