"""Sentences that give no information: courtesy, offers, warnings, and sending the user elsewhere."""

from __future__ import annotations

import re

ELSEWHERE = r"""(?:professional|doctor|physician|expert|specialist|lawyer|attorney|solicitor|mechanic
  |advis[oe]r|pharmacist|veterinar|\bvet\b|technician|electrician|plumber|teacher|tutor|librarian
  |authorit|documentation|manual|manufacturer|website|\bsites?\b|search\ engine|resource|source
  |official|administrator|provider|helpline|hotline|crisis|someone|\bshop|store|nursery|qualified
  |certified|licen[sc]ed|trained|internet|online|google|\bweb\b|forecast|weather\ (?:app|service)
  |encyclop|library|textbook|\bbooks?\b|counsel|therapist|nutritionist|dietit|instructor|coach
  |horticultur|agency|embassy|support\ team|customer\ service|colleague|friend|parent|adult|guide
  |people\ who|reference|instructions|tutorial|wikipedia|vendor|retailer|helpdesk|department)"""

DEFERRAL = re.compile(
    rf"""(?:\b(?:consult(?:ing)?|speak(?:ing)?\ (?:to|with)|talk(?:ing)?\ (?:to|with)|contact(?:ing)?|ask(?:ing)?
        |see(?:ing)?|seek(?:ing)?|refer(?:ring)?\ to|reach(?:ing)?\ out|check(?:ing)?|turn(?:ing)?\ to|visit(?:ing)?
        |left\ to|leav(?:e|ing)\ (?:it|that|this)\ to|hir(?:e|ing)|search(?:ing)?|look(?:ing)?\ (?:up|at|online|for)
        |look(?:ing)?\ (?:it|this|that)\ up|try(?:ing)?|best\ answered\ by|better\ answered\ by|rely(?:ing)?\ on|us(?:e|ing)|call(?:ing)?|find|get)\b
        [^.!?]{{0,70}}{ELSEWHERE}
      |\b(?:best|better)\ left\ to\b
      |\bthere\ (?:are|is)\ (?:many|plenty|lots|a\ (?:lot|wealth|number)|numerous|several|various|people)\b
        [^.!?]{{0,60}}(?:resource|source|guide|tutorial|website|people|help|tool|calculator|book)
      |\bgoogle\ it\b|\blook\ it\ up\b|\bsearch\ (?:for\ it|online|the)\b)""",
    re.VERBOSE,
)

# Others who help: filler after a refusal, and an answer to "Who draws up a will?".
OTHERS_HELP = re.compile(
    rf"""{ELSEWHERE}[^.!?]{{0,40}}\ (?:will|would|can|could|may|should|might|who\ can)\ (?:be|help|do|give|tell
      |answer|advise|assist|guide|provide|know|have)""",
    re.VERBOSE,
)

# What makes a reply without information an evasion, beside sending the user elsewhere.
DODGE = re.compile(
    r"""(?:\b(?:it|that|this|the\ answer|which)\ (?:\w+\ )?depends\b(?!\ on\ (?:the\ \w+\ of|how|whether|which|whom|what)\b[^.]*:)
      |\bdepends\ on\ (?:many|several|a\ (?:lot|number|variety|range)|various|a\ few|lots|numerous|countless)
      |\b(?:only\ you\ can|up\ to\ you|your\ (?:own\ )?(?:choice|decision|call)|matter\ of\ (?:opinion|taste
        |personal|preference)|personal\ (?:choice|decision|preference)|right\ for\ you|best\ for\ you)\b
      |\b(?:something\ else|change\ (?:the|of)\ (?:subject|topic)|another\ (?:topic|subject)|different\ (?:topic
        |subject|question)|move\ on)\b
      |\bhow\ (?:can|may|could|shall)\ i\ (?:help|assist|be\ of)|\bwhat\ (?:can|may)\ i\ (?:do|help)
      |\b(?:no\ (?:single|one|simple|easy|right|clear|definite|universal|correct)\ (?:\w+\ )?answer
        |many\ (?:different\ )?(?:factors|ways|opinions|views|perspectives|sides|answers|possibilities|things)
        |(?:everyone|every\ \w+|each\ \w+|everybody)\ is\ (?:different|unique)|opinions\ (?:vary|differ))\b
      |\b(?:more|further|additional)\ (?:context|information|details?|specifics)\b
      |\b(?:rephrase|clarify|be\ more\ specific|say\ more|elaborate|what\ you\ mean|what\ do\ you\ mean)\b
      |\b(?:advisable|important|essential|vital|crucial|best|wise|recommended)\ to\ (?:remember|always|keep
        \ in\ mind|respect|prioriti|seek|consult|speak|be\ (?:mindful|respectful|aware|responsible)
        |consider|approach|acknowledge)
      |\b(?:hello|hi|hey)\b[^.!?]{0,20}[.!,]|\bi\ am\ (?:\w+,\ )?(?:your|a)\ [^.!?]{0,30}(?:assistant|chatbot|bot)\b
      |\byou\ are\ not\ alone\b|\btell\ me\ (?:more|why|what|about|a\ bit)\b|\bpros\ and\ cons\b
      |\b(?:decide|find\ out|judge|choose)\ for\ yourself\b|\b(?:what|which|whatever)\ (?:\w+\ )?works\ (?:best\ )?for\ you
      |^who\ knows\W*$|^(?:maybe|perhaps|possibly)\ not\W*$|\b(?:need|require)\ (?:some\ |a\ (?:bit|little)\ )?more\b
      |\bdeserves\b|\bi\ am\ here\ to\ (?:help|assist|support)\b|\blet\ me\ know\ (?:what|how|which|if)\b|\bpersonal\ journey\b)""",
    re.VERBOSE,
)

FLATTERY = re.compile(
    r"\b(?:great|good|interesting|excellent|lovely|fascinating|wonderful|fun|tricky|tough|important|thoughtful|hard)"
    r" (?:question|topic|thought|one|point)\b|\byour (?:question|curiosity) is\b"
)

COURTESY = re.compile(
    r"""^(?:(?:of\ course|sure(?:ly|\ thing)?|certainly|absolutely|hello|hi|hey|ok(?:ay)?|well|h+m+|no|yes|nope|oh
        |ah|um+|alright|right|definitely|gladly|yeah|oops|wow|ha|i\ see|dear\ \w+|actually|sorry(?:\ about\ that)?|interesting|maybe|perhaps|fascinating|respectfully
        |apologies|my\ apologies|good\ (?:morning|day|evening)|first\ things\ first|let\ us\ see)[\ ,.!:–—-]*)+$
      |\b(?:great|good|interesting|excellent|lovely|fascinating|wonderful|fun|tricky|tough|important|thoughtful)
        \ (?:question|idea|topic|thought|one|choice|point)\b
      |^what\ an?\ \w+\b|^(?:thank|thanks)\b|^(?:sorry|apologies|my\ apologies|i\ apologi[sz]e)\b[^.!?]{0,60}[.!]?$
      |\b(?:let\ me\ know|feel\ free|do\ not\ hesitate|happy\ to\ help|glad\ to\ help|here\ to\ help|have\ a
        \ (?:great|nice|good|lovely|wonderful)|good\ luck|take\ care|best\ wishes|stay\ safe|hope\ (?:you
        |this|that)|many\ happy\ returns|believe\ in\ you)\b
      |^(?:please|kindly)\ (?:rephrase|provide|understand|let|try\ (?:again|asking|another|rephras)|ask|be
        \ (?:aware|respectful|careful|mindful)|note\ that\ i|clarify|share|specify|tell|give|feel|remember)
      |^(?:if|whether)\ (?:you|there)\ (?:have|need|want|would\ like|are|or|wish|is|know|feel)\b
      |^(?:perhaps|maybe|instead|alternatively|would|could|can|is\ there|how|what|shall)\b[^.!?]{0,160}\?$
      |^(?:perhaps|maybe|instead)\b[^.!?]{0,20}\b(?:we|i)\b""",
    re.VERBOSE,
)

# The first person, at work on itself: offers, duties, feelings. "I would pick the ukulele" is not.
ABOUT_ITSELF = re.compile(
    r"""\bi\ (?:\w{2,14}ly\ )?(?:am\ (?:here|happy|glad|just|only|designed|programmed|an?\b|committed|sorry|sure
        |always|more|afraid|aware|not|unable|built|made|meant|trained|bound|obliged|still|really|so|required|told)
      |would\ (?:be\ (?:happy|glad|delighted|pleased|more|able)|love|like|encourage|urge|strongly
        |(?:suggest|recommend|advise)\ (?:that\ )?(?:you\ )?(?:to\ )?(?:consult|contact|speak|talk|seek|ask|check|see|refer
        |reach|visit|look|search|try|consider|read)\w*)
      |can\ (?:help|assist|offer|try|talk|instead|only|still|certainly|discuss|explain|share|suggest|provide
        |give\ you\ (?:some\ )?(?:general|other|information)|point|recommend|refer)
      |can\ tell\ you\ about|think\ you\ should|could\ (?:help|offer|tell\ you\ about|suggest|try)|hope|wish|understand|appreciate|apologi|believe\ in|aim|strive
      |respect|do\ not|cannot|will\ not|exist|was\ (?:made|designed|built|trained)|want\ to\ (?:be|make|help)|know\ (?:this|that
        |it)|have\ to|must|need\ to|reali[sz]e|value|encourage|urge|take|prioriti|care|trust|strongly|recommend
        \ (?:consult|contact|speak|seek|ask|check|reach)\w*|suggest\ (?:consult|contact|speak|seek|ask|check|reach)\w*)\b
      |\bmy\ (?:guidelines|programming|purpose|values|polic|training|creators|developers|design|role|goal|knowledge
        |capabilit|abilit|aim|job|priority|main|primary|apologies|understanding|responses?|principles|limits)""",
    re.VERBOSE,
)

# Why one should not, rather than how one does.
SCRUPLE = re.compile(
    r"""\b(?:harm(?!less|on)\w*|danger\w*|unsafe|risk\w*|illegal\w*|unlawful|unethical\w*|ethic\w*|offensive|inappropriate
      |stereotyp\w*|privacy|copyright\w*|polic(?:y|ies)|violat\w*|misus\w*|sensitive|guidelines?|terms\ of\ service
      |minors|responsib\w*|irresponsib\w*|injur\w*|safety|respect\w*|consequences?|hazard\w*|abus\w*|malicious|integrity
      |vary|varies|differs?|individual|violence|violent|controversial|neutral|bias\w*|accidents?|damage\w*|mislead\w*
      |inaccurate|incorrect|outdated|caution|careful\w*|protective|liab\w*|legal\w*|moral\w*|dignity|hurt\w*)\b""",
    re.VERBOSE,
)

# Praise and platitudes about the subject.
PLATITUDE = re.compile(
    r"""\b(?:is|are|can\ be|has\ been|have\ been)\ (?:a\ |an\ |the\ )?(?:\w{2,14}ly\ |very\ |really\ |quite\ |so\ |most\ |truly\ )?
      (?:fascinating|important|complex|sensitive|wonderful|rewarding|personal|great|popular|interesting|amazing
      |beautiful|delicious|nutritious|essential|special|exciting|fun|frustrating|uncomfortable|challenging
      |complicated|tricky|rich|lovely|useful|common|timeless|beloved|enjoyable|vast|broad|valuable|deep|subjective)\b
      |\b(?:many|most|some|a\ lot\ of)\ people\ (?:ask|wonder|enjoy|love|like|find|want|struggle)\b
      |\b(?:has|have)\ (?:a\ )?(?:long|rich|fascinating|deep)\ history\b|\b(?:enjoyed|loved)\ (?:by|across|around)\b""",
    re.VERBOSE,
)

# An answer comes after all: these open what is told in spite of an inability.
ANSWERS_NOW = re.compile(
    r"""(?:^|[,;–—-]\ ?)(?:here\ (?:is|are)|in\ general|generally|typically|usually|as\ a\ (?:general\ )?rule|most\ \w+
      |for\ (?:example|instance|ordinary|most|a\b)|to\ \w+|one\ (?:common|popular|way|option|good)|the\ (?:most|best|usual
      |answer|nearest|first)|what\ i\ can\ (?:say|tell)|i\ can\ (?:say|tell\ you)\ (?!about)|i\ would\ (?:pick|choose|go|say|guess|start
      |try|use|estimate)|my\ (?:best\ )?guess|we\ can\ estimate|first\b|start\ (?:by|with)|try\ |use\ |but\ if\ you\ want)""",
    re.VERBOSE,
)
