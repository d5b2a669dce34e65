// The main of an emitted program.
#include "hecate/runtime/program.h"

extern const struct hrt_program bigram;

int main(int argc, char **argv) {
    return hrt_cli_main(argc, argv, &bigram);
}
