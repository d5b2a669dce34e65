// Internal errors: a bug of hecatec ends with status 70 and a file that reproduces it.
#ifndef HECATE_CODEGEN_STAGES_CRASH_H
#define HECATE_CODEGEN_STAGES_CRASH_H

// From now on a failed assert, abort or crash is reported as an internal error. `argv` stays valid.
void hec_crash_guard(int argc, char **argv);

// The next user of the module, and the last stage it has passed: a literal or otherwise lasting.
void hec_crash_progress(const char *doing, const char *stage);

// Reports an internal error and ends the process with status 70. Runs hecatec again with the same
// arguments up to the last good stage, to save the IR that shows the fault.
_Noreturn void hec_crash(void);

#endif
