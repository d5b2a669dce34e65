// The settings that a program takes have one range, in the compiler's table and in the program's.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lang/program.h"
#include "lang/settings.h"
#include "runtime/config/config.h"
#include "runtime/params/tensor.h"

_Static_assert((int)HEC_PATH_MAX == (int)HRT_PATH_MAX - 1, "files hold every parameter");

static void test_ranges(void **state) {
    (void)state;
    for (const struct hrt_setting_row *own = hrt_config_rows; own->key; own++) {
        const struct hec_setting_row *row = hec_setting_row(own->key);
        if (!row) fail_msg("hecatec does not know %s", own->key);
        const enum hrt_value_kind kind = own->rule.kind;
        if (kind != HRT_VALUE_INTEGER && kind != HRT_VALUE_REAL && kind != HRT_VALUE_PAIR) continue;
        if (row->smallest != own->rule.least || row->largest != own->rule.most)
            fail_msg("%s: hecatec takes %g to %g, the program %g to %g", own->key, row->smallest,
                     row->largest, own->rule.least, own->rule.most);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ranges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
