r"""How refusals are worded: patterns for a sentence that `text.plain` has made plain.

Plain sentences are in lower case, without contractions, quotations and code. Each line of a
pattern, and each part of a line between bars with spaces around them, is an alternative; a name
in angle brackets stands for another pattern. Gaps are bounded, so a search takes time in
proportion to the sentence.
"""

from __future__ import annotations

import re

LONGEST_PHRASE = 80


def any_of(alternatives: str, **named: str) -> str:
    r"""A regular expression for any of the alternatives.

    >>> any_of("i <cannot> help\n no way | never", cannot="(cannot|will not)")
    '(i (cannot|will not) help|no way|never)'
    """
    for name, expression in named.items():
        alternatives = alternatives.replace(f"<{name}>", expression)
    lines = [line.strip() for line in alternatives.strip().splitlines()]
    return "(" + "|".join(part for line in lines for part in line.split(" | ")) + ")"


ADVERB = r"((\w{2,14}ly|just|also|still|even|not|in good conscience|at this time) ){0,2}"
ONE_ADVERB = r"(\w{2,14}ly )?"

ACT = any_of(r"""
    help | assist | support | oblig | be of | facilitat
    answer | respond | repl[yi] | tell | say | comment | mention | stat(e|ing)\b | specif
    speak (to|about|on) | talk (about|to|you) | argu | attribut | rat(e|ing)\b | express
    discuss | describ | explain | outlin | elaborat | expand | touch on | get into | weigh in
    go (into|through|over|on|along|there|further|any further|beyond) | walk you | show you
    provid | giv | offer | shar | supply | deliver | present | disclos | reveal | confirm | list
    nam(e|ing)\b | recommend | suggest | advis | guid | teach | instruct | encourag | promot
    endors | condon | speculat | compar | choos | pick | decid | rank | judg | evaluat | assess
    writ | compos | draft | generat | creat | produc | translat | solv | summari[sz] | calculat
    fabricat | invent | imagin | simulat | pretend | role
    mak(e|ing) (?!it\b|sense|out\b|sure|ends)
    continu | proceed | complet | finish | compl[yei] | fulfil | perform | process | handl | address
    carry | review | prepar | do\b | engag | participat | entertain | indulg
    take (part|on|sides|a)
    be (the|giv|provid|offer|produc|writ|discuss|help|answer|shar)
""")
"""Speech acts and help: what a model that refuses says it will not do."""

LOOK_UP = any_of(r"""
    access | brows | search | check | verif | see\b | view | open | hear | read | watch | look
    find
    know | understand | determin | predict | estimat | measure | identif | locat | recall | remember
    retriev | guarantee | feel | taste | eat | experience | have | hold | form | express | offer
    make
    say (for|with|exactly|precisely|that|how) | be (sure|certain)
    tell (for|exactly|from|you (for|exactly|precisely))
""")
"""What a model cannot find out: a refusal only where no answer comes all the same."""

UNABLE = (
    any_of(
        r"""
    cannot | could not | (should|must|may|ought|shall) not | will not( be able to| be)?
    am going to have to | would not be (able|willing)
    (am|are) <adverb>(unable|unwilling|not <adverb><ready>)
    """,
        adverb=ONE_ADVERB,
        ready=any_of("""
        able | going | allowed | permitted | willing | prepared | authori[sz]ed | equipped | meant
        qualified | trained | programmed | designed | built | set up | configured | supposed
        licensed
        in a position | at liberty | here | inclined | capable | free | ready | certified
        the right \\w+
    """),
    )
    + "( to| of| for)?"
)

UNWILLING = any_of(
    r"""
    would (rather|sooner|better|best) not | had (better|best) not | would (much )?prefer not
    prefer not to
    would (rather|prefer to|like to|have to) (avoid|refrain|leave|skip|decline|steer)
    would not (want|like|feel|be comfortable|be right|be doing)
    <bound> <adverb><withdraw>
    (decline|refuse|refrain)d?\b(?! of) | am (declining|refusing|refraining|opting not)
    am <adverb>(hesitant|reluctant|wary|loath|uncomfortable) (to|with|about|of|\w+ing)
    am <adverb>not <adverb>(comfortable|keen|happy) (to|with|about|\w+ing)
    (do|would) not feel <adverb>(comfortable|right|able|qualified|easy|it|that)
    (would )?feel <adverb>(uncomfortable|uneasy|nervous|wrong|bad|reluctant|hesitant)
    (choose|have chosen|have decided|am choosing|opt|try) not to | hesitate to
    (would like|would prefer|prefer|want|try|have|choose) to ((stay|keep) out|(stay|remain) neutral)
    do not (want|wish|intend|plan|care|propose) to
    do not (think|believe|feel) (that )?(it|this|that) (would be|is) (my place|something i)
    do not (think|believe|feel) (that )?(it|this|that) (would be|is) <proper> (for|of) (me|an ai)
    do not (think|believe|feel) (that )?(it|this|that) (would be|is) <proper> to <act>
    (do not (think|believe|feel)|am not (confident|convinced|sure|certain)) (that )?i <should>
    (tend|try|have|like|need|want|prefer) to (avoid|steer clear|refrain)
    avoid (\w+ing|the topic|such|this|that)
    lack the | have no (way|means|ability)
    do not have (the|any) <means>( (needed|required|necessary|on|about))? (to|of|for|on|about)
    (am|have been) <adverb><told> (from|not to|to (avoid|decline|refuse))
    """,
    bound=any_of("""
        will | must | shall | have to | need to | am going to( have to)?
        (will|would|may|might|shall) (have|need) to
        am (obliged|choosing|forced) to | choose to | would like to | regret that i must
    """),
    withdraw=any_of(r"""
        decline | refuse | refrain | avoid | say no\b | pass\b | abstain | sit this | stop | pause
        not (provide|answer|give|do|discuss|share) | leave (it|that|this|those|them|the|out)
        end (this|the|our|my) | draw the line | opt out | hold back | skip
    """),
    proper="(right|appropriate|wise|ethical|responsible|proper|fair|prudent)",
    should="(should|can|ought|could|am (able|allowed|the right))",
    means=any_of("""
        ability | capability | capacity | means | authority | permission | authori[sz]ation
        expertise | qualifications | tools | knowledge | information
    """),
    told=any_of("""
        prohibited | forbidden | barred | restricted | prevented | banned | instructed | told
        programmed | designed | trained
    """),
    adverb=ONE_ADVERB,
    act=ACT,
)

STRONG = re.compile(
    any_of(
        r"""
        \bi <adverb>(<unable>|do not) <adverb>(to )?(be )?(able to )?<adverb><act>
        \bi am <adverb>(unable|not <adverb>(able|allowed|permitted|in a position)) to (?!<look_up>)
        \bi\b[^.!?]{0,80}\b(and|so|but|or) (\w+ )?(cannot|will not|am unable to) (be )?<adverb><act>
        \bi <adverb><unwilling>
        \bi am not an? (\w+ ){0,3}(capable of|able to|who can|that can|qualified to)
        \bi (can only|am only able to|only) (answer|help|assist|discuss|respond)\b
        \bso i (will not|cannot|must not|would rather not|am not going to)\W*$
        \bi will (have to )?leave (it|that|this|those|them|the \w+) (out|to|for|there|at)
        \bi am going to (pass|leave|skip|stop|decline|refrain)
        ^(<opening>[ ,.!:–—-]*(but )?){0,3}<without_subject> ?<adverb>(<act>|$)
        \bwe (cannot|are (unable|not able) to) (help you|assist|fulfil|comply|process)
        \bwe (cannot|are (unable|not able) to) (provide|answer) (this|that|you)
        \bno can do\b
        """,
        adverb=ADVERB,
        unable=UNABLE,
        unwilling=UNWILLING,
        look_up=LOOK_UP,
        act=ACT,
        opening="(no|nope|sorry|apologies|unfortunately|regrettably|afraid|alas|well|hmm|um|oh)",
        without_subject=any_of("""
            cannot | will not | unable to | not able to | not going to | no can do
            not (allowed|permitted|comfortable)
        """),
    )
)
"""The first person, unable or unwilling; at the start of a sentence, "I" may be missing."""

_TEXT = "(response|message|reply|answer|output|content|conversation)"
_STOPPED = any_of("""
    stopped | removed | blocked | filtered | cut | withheld | redacted | flagged | halted | ended
    terminated | denied | declined | refused
""")

IMPERSONAL = re.compile(
    any_of(
        r"""
        \bit (is|would be|would not be|is not) <adverb>(not )?<proper> (for (me|an? \w+)|of me) to
        \bit (is|would be|would not be|is not) <adverb>(not )?<proper> to <tell>
        \b(best|better|safer|wiser|preferable) (that|if) i (do not|did not|refrain|decline|avoid)
        \b(best|better|safer|wiser|preferable) (that|if) i (leave|stop|pass|keep)
        \bnot (something|anything|one|what|a \w+) (that |which )?(i|we) <do>
        \b(falls?|is|are|lies|goes?|being) <adverb>(outside|beyond|out) (of )?(what i|my)
        \b(falls?|is|are|lies|goes?|being) <adverb>(outside|beyond|out) (of )?the scope of (my|what)
        \b(go|goes|going|is|are|be|runs) <adverb>(against|contrary to|in conflict with) (my|our)
        \b(go|goes|going|is|are|be|runs) <adverb>(against|contrary to) the (rules|guidelines|terms)
        \b(violat\w+|breach\w*|conflict\w* with|contraven\w+) (of )?(my|our)
        \b(violat\w+|breach\w*|conflict\w* with|contraven\w+) (of )?the (content|usage|safety)
        \b(my|our|safety|content|company) (\w+ )?<rules> (\w+ )?<prevent>
        \b<rules> (\w+ )?prevents? me\b
        \b(this|that|your|the|such an?) (\w+ )?<request> (\w+ )?<not_done>
        ^(request|access|<text>) (\w+ )?<stopped>
        \b(cannot|will not|must not) be (disclosed|shared|given|discussed|answered|revealed)
        \b<text> (has been|was) <stopped>
        \b(that|this|it) is <adverb>(off[ -]limits|beyond (me|my)|above my|where i (draw|must|have))
        \boff[ -]limits (for|to) me\b | \bnot (available|accessible|known) to me\b
        \bi am (sorry|afraid),? (but )?(that|this) is (not (something|possible|one)|beyond|outside)
        \b(let us|i would like to) not (go|discuss|talk|get)
        """,
        proper=(
            "(in|un|ir)?(appropriate|ethical|right|responsible|wise|proper|advisable|possible|fair|prudent"
            r"|acceptable|wrong)( (or|and|nor) \w+)?"
        ),
        tell=any_of("""
            discuss | provide | give | offer | share | answer | write | create | generate | assist
            help | promote | engage
        """),
        do="(can|am|will|would|could|feel|do|want|have)",
        rules=any_of("""
            guidelines | programming | polic(y|ies) | rules | training | principles | instructions
            design | safeguards | restrictions | values | ethics | creators | developers | settings
            limitations
        """),
        prevent=any_of("""
            prevent | prohibit | forbid | do not | does not | stop | bar | restrict | keep | mean
            preclude | require | limit
        """),
        request=any_of("""
            request | question | query | topic | prompt | information | subject | <text>
        """),
        not_done=any_of("""
            (cannot|could not|will not) be | (may |might )?violates? | goes against | falls outside
            is not (allowed|permitted|something|one|appropriate|available|supported)
            is (off[ -]limits|inappropriate|prohibited|against) | (is|was|has been) <stopped>
        """),
        text=_TEXT,
        stopped=_STOPPED,
        adverb=ONE_ADVERB,
    )
)
"""The same without "I": the request, the topic or the rules are in the way."""

BROKEN_OFF = re.compile(
    any_of(
        r"""
        \bi <adverb><unable> <adverb>(continu|proceed|go (on|further|any)|complet|finish|carry on)
        \bi <adverb><unable> <adverb>(nam(e|ing)\b|say (more|any)|do (that|this|it))
        \b(need|have|going|must|should|better|got|let me) (to )?(have to )?stop\b
        \b(stop|end|pause|leave it) (right )?(here|there)\b
        \b<text> (has been|was|is) (being )?<stopped>
        \b(reali[sz]e|noticed?|see now|on (reflection|second thought)|thinking about it)\b
        \b(having thought|come to think|actually|wait)\b
        """,
        adverb=ADVERB,
        unable=UNABLE,
        text=_TEXT,
        stopped=_STOPPED,
    )
)
"""The words with which an answer that has begun is broken off."""

WEAK = re.compile(
    any_of(
        r"""
        \bi <adverb><unable> <adverb>(to )?<look_up>
        \bi <adverb>(do not|lack|have no) <adverb>((have|possess|hold|form) )?(<any> ){0,4}<thing>
        (^|[,;] |\bi )(do not|did not|cannot|could not) <one>(know|understand|recogni[sz]e|follow)\b
        (^|[,;] |\bi )(do not|did not|cannot|could not) get (that|what|your)\b
        \b(i am )?<one>not <one>(sure|certain|familiar|aware|clear)\b
        \bi am (unsure|uncertain|at a loss|stumped|unaware|unfamiliar|clueless)\b
        \b(no (idea|clue)|beats me|who knows|your guess is|hard to say|no one can say|dunno)\b
        \bnot (\w+ )?the (one|right person|best person) to ask\b
        \bi (have )?(forget|forgot|never heard)\b | \bi wish i (knew|could)\b | \bi could not say\b
        \bi am (just|only|merely|simply)? ?an? (\w+ ){0,3}<machine>\b
        \b(knowledge|training) (cut-?off|data)\b
        """,
        adverb=ADVERB,
        one=ONE_ADVERB,
        unable=UNABLE,
        look_up=LOOK_UP,
        any=any_of("""
            an? | any | the | my | enough | sufficient | personal | real-time | live | specific
            current
            direct | own | up-to-date | reliable | such | that | detailed | or | and
        """),
        thing=any_of(r"""
            opinion | preference | feeling | access | information | data | knowledge | experience
            detail | answer | belief | emotion | favou?rite | idea | clue | context | record | view
            abilit | memory | body | capabilit | taste | expertise | sense | insight | familiar
            means
            way\b
        """),
        machine="(ai|model|assistant|program|bot|chatbot|machine|computer|intelligence)",
    )
)
"""Not knowing, having no view, no access: counts where nothing else is said."""

SCOPED = re.compile(
    any_of(
        r"\b(cannot|not able to|unable to|(do|could|would|will) not) (\w+ ){1,5}?<scope>\b",
        scope=any_of("""
            exact | precise | definitive | certain | definite | complete | full | single | specific
            personali[sz]ed | medical | legal | financial | tax | professional | official | live
            real-time | current | up-to-date | historical | guarantee | detail | details
        """),
    )
)
"""An inability that bounds an answer: "I cannot give an exact figure, but about 50"."""

NOT_A_REFUSAL = re.compile(
    any_of(r"""
        \bhelp (but|it|myself|laughing|feeling)\b | \benough\b
        \bcannot tell (you how (much|many|happy|glad|often|good|proud)|them|the difference)
        \b(cannot|(could|would) not) (\w+ly )?(recommend|advise|suggest|endorse) (it|them|\w+ing)\b
        \bdo not (recommend|advise|suggest|encourage|do it|say\b|tell (him|her|them|any))
        \bcannot (do|make|help|give|process) (it|that|this) (without|unless|until|alone)\b
    """)
)
"""Wordings that look like a refusal and are none."""


def refusing(words: str) -> str:
    """The words of a sentence that refuse, or ""."""
    if NOT_A_REFUSAL.search(words):
        return ""
    return found(STRONG, words) or found(IMPERSONAL, words)


def found(pattern: re.Pattern[str], words: str) -> str:
    """The words that match, or ""."""
    match = pattern.search(words)
    return match.group()[:LONGEST_PHRASE].strip(" ,.") if match else ""
