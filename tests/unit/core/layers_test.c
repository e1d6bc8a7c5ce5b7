/* Layers spread over classes. */
#include "support.h"

#include "core/layers.h"

enum { LAYERS_MAX = 500 };

/* Counts layers per class, for every number of layers and of classes. */
static void layers_class__spreads_layers_evenly_front_first(void **state)
{
    (void)state;
    for (uint32_t classes = 1; classes <= GW_LAYERS_CLASSES_MAX; classes++)
        for (uint32_t layers = 1; layers <= LAYERS_MAX; layers++) {
            uint32_t counts[GW_CLASSES] = {0};
            uint8_t before = GW_CLASS_DATA_MAX;
            for (uint32_t layer = 0; layer < layers; layer++) {
                uint8_t class = gw_layers_class(layer, layers, classes);
                assert_true(class <= before && class > GW_CLASS_DATA_MAX - (int)classes);
                before = class;
                counts[class]++;
            }
            assert_int_equal(gw_layers_class(0, layers, classes), GW_CLASS_DATA_MAX);
            for (uint32_t tag = 0; tag < classes; tag++) {
                assert_true(counts[GW_CLASS_DATA_MAX - tag] >= layers / classes);
                assert_true(counts[GW_CLASS_DATA_MAX - tag] <= layers / classes + 1);
            }
        }
}

static void layers_class__is_the_floor_of_the_paper(void **state)
{
    (void)state;
    /* VGG16: 16 layers, 6 classes: tags floor(6 x / 16). */
    static const uint8_t expected[16] = {6, 6, 6, 5, 5, 5, 4, 4, 3, 3, 3, 2, 2, 2, 1, 1};
    for (uint32_t layer = 0; layer < GW_COUNT_OF(expected); layer++)
        assert_int_equal(gw_layers_class(layer, 16, GW_LAYERS_CLASSES), expected[layer]);
    assert_int_equal(gw_layers_class(6, 7, GW_LAYERS_CLASSES_MAX), GW_CLASS_BEST_EFFORT);
    assert_int_equal(gw_layers_class(UINT32_MAX - 1, UINT32_MAX, GW_LAYERS_CLASSES), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_class__spreads_layers_evenly_front_first),
        cmocka_unit_test(layers_class__is_the_floor_of_the_paper),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
