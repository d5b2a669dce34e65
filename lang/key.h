// Keys of settings: HEC_KEY_train_steps is "train.steps".
#ifndef HECATE_LANG_KEY_H
#define HECATE_LANG_KEY_H

enum hec_key {
#define HEC_SETTING(id, ...) HEC_KEY_##id,
#include "lang/settings.def"
#undef HEC_SETTING
    HEC_KEYS
};

#endif
