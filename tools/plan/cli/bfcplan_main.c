/* bfcplan: plans memory. Each buffer, whose size and lifetime are known, gets an address, so that
 * all buffers together need nearly the least memory possible. See docs/plan.md. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tools/plan/cli/command.h"

static const char help[] =
    "usage: bfcplan COMMAND …\n"
    "\n"
    "  solve FILE [-o PLAN] [--offsets OUT.csv]  pack the lifetimes of a CSV or a recorded trace\n"
    "      --capacity BYTES    the search ends soon after a plan fits (K, M, G, T are binary)\n"
    "      --align N           offsets and sizes are multiples of it (default 512)\n"
    "      --time-limit S      most seconds (default: 2.5, or up to 60 with a --capacity)\n"
    "      --threads N         default: all processors\n"
    "      --seed N            of the random restarts (default 1)\n"
    "      --stream-gap T      time that must pass between buffers of different streams (default "
    "0)\n"
    "      --json              one line of JSON\n"
    "  check PLAN FILE [--json]                  check that the plan is valid for the file\n"
    "  lifetimes GRAPH.json -o OUT.csv           make lifetimes from a dataflow graph\n"
    "  lifetimes MODEL.onnx -o OUT.csv           from a model (needs Python's onnx package)\n"
    "      --dims NAME=N,…     sizes of its dynamic dimensions\n"
    "  lifetimes …-buffer-assignment.txt -o OUT.csv\n"
    "                                            take over what XLA dumped (needs Python)\n"
    "      --order given|dfs|bfs|min-peak        order of execution (default given)\n"
    "      --time-limit S      for min-peak (default 2)\n"
    "      --seed N            for min-peak (default 1)\n"
    "      --json              one line of JSON\n"
    "  plot FILE|PLAN -o OUT.svg                 draw lifetimes over time and address\n"
    "      --align N           for a FILE without offsets, which is packed first (default 512)\n"
    "  period TRACE [--json]                     find the part of a trace or CSV that repeats\n"
    "  --help, --version\n"
    "\n"
    "Exit status: 0 success; 1 bad input or an invalid plan; 2 wrong usage; 3 no plan within the\n"
    "capacity. The formats are in docs/plan.md, which is installed in share/doc/bfcpreload.\n";

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {{"solve", command_solve},
                {"check", command_check},
                {"lifetimes", command_lifetimes},
                {"plot", command_plot},
                {"period", command_period}};

/* Prints the answer to --help or --version, which may stand before or after a command. False:
 * neither is given. */
static bool show_help(int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        bool asked = strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
        if (asked || (i == 1 && strcmp(argv[i], "help") == 0))
            fputs(help, stdout);
        else if (strcmp(argv[i], "--version") == 0)
            puts("bfcplan " BFC_VERSION);
        else
            continue;
        return true;
    }
    return false;
}

int main(int argc, char **argv) {
    if (argc < 2)
        return command_misuse("no command; accepted are solve, check, lifetimes, plot, period");
    if (show_help(argc, argv))
        return EXIT_GOOD;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    return command_misuse(
        "unknown command '%s'; accepted are solve, check, lifetimes, plot, period", argv[1]);
}
