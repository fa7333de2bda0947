'''The rules, one file each. To add one, say HL777, write ``hl777.py`` here and ``tests/lint/cases/hl777.md``; nothing
else has to know.

**The rule.** Its docstring is its page, which ``holdfast explain HL777`` shows::

    """# HL777 a title of a few words, lower case, that names what is wrong

    ## Bad
    (a python block, with its imports: the tests see that the rule fires on it)

    ## Good
    (the same, mended: the tests see that the rule does not)

    ## Why
    What happens, when, in two or three sentences.

    ## See
    `holdfast explain F43`; issues such as pytorch#11887.
    """

    LEVEL = Level.WARNING

    def check(script: Script) -> Iterator[Remark]:
        for call in script.calls_to("os.listdir"):
            yield Remark(call, "a sentence with the user's own names, no full stop", "fix as code")

A rule asks the ``Script`` and never walks the tree on its own: ``nodes``, ``calls_to`` (by full name, whatever it was
imported as), ``calls_of_method``, ``above``, ``function_of``, ``at_import``, ``in_loop``, ``resolve``, ``value_of``,
``datasets``, ``loaders``, ``items`` and ``item_of`` (what runs in workers), ``undefined_names``. All of it is worked
out when it is first asked for, so ask for the rarest thing first. Literal arguments only: what the file does not show
is no finding.

**Its cases.** A heading says the promise, the block below is a script of its own, and each line on which the rule must
fire ends with ``# fires``. A block without such a line is a near miss.
'''
