/* SPDX-License-Identifier: Apache-2.0 */
/* A program with an MPI of its own linked in, as -static or an .a gives it: nothing preloaded sees
 * its calls. "idle": it doesn't use it. MANY_NAMES: among more functions than any end of a process
 * should look through. */
#include <string.h>

int MPI_Init(int *argc, char ***argv);
int PMPI_Initialized(int *flag);

static int begun;

__attribute__((noinline)) int MPI_Init(int *argc, char ***argv)
{
    begun = *argc > 0 && **argv != NULL;
    return 0;
}

__attribute__((used)) int PMPI_Initialized(int *flag)
{
    *flag = begun;
    return 0;
}

#ifdef MANY_NAMES
__asm__(
    ".altmacro\n"
    ".macro named number\n"
    ".type function_of_a_long_name_as_templates_of_other_languages_make_them_\\number, @function\n"
    "function_of_a_long_name_as_templates_of_other_languages_make_them_\\number:\n"
    ".endm\n"
    ".set number_of_names, 0\n"
    ".rept 20000\n"
    "named %number_of_names\n"
    ".set number_of_names, number_of_names + 1\n"
    ".endr\n"
    ".noaltmacro\n");
#endif

int main(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[1], "idle") == 0 ? 0 : MPI_Init(&argc, &argv);
}
