"""How refusals are worded: patterns for one sentence of text that `text.plain` has made plain.

Plain text is in lower case, without contractions, quotations and code. Gaps are bounded, so a
match takes time in proportion to the length of the sentence.
"""

from __future__ import annotations

import re

ADVERB = r"(?:(?:\w{2,14}ly|just|also|still|even|not|in\ good\ conscience|at\ this\ time)\ ){0,2}"

# Speech acts and help: what a model that refuses says it will not do.
ACT = r"""(?:help|assist|answer|provid|giv|offer|shar|tell|say|discuss|describ|explain|recommend
  |suggest|advis|comment|speculat|generat|creat|writ|produc|compos|draft|continu|compl[yei]
  |fulfil|support|engag|participat|respond|repl[yi]|nam(?:e|ing)\b|list|compar|confirm|disclos
  |reveal|proceed|translat|solv|summari[sz]|teach|guid|instruct|walk\ you|show\ you|get\ into
  |go\ (?:into|through|over|on|along|there|further|any\ further|beyond)|talk\ (?:about|to|you)
  |speak\ (?:to|about|on)|weigh\ in|take\ (?:part|on|sides|a)|facilitat|endors|encourag|condon
  |promot|oblig|entertain|indulg|elaborat|handl|address|process|perform|carry|calculat|do\b|be\ of
  |mak(?:e|ing)\ (?!it\b|sense|out\b|sure|ends)|choos|pick|decid|rank|judg|evaluat|assess|review
  |prepar|complet|finish|supply|deliver|expand|outlin|present|touch\ on|be\ (?:the|giv|provid
  |offer|produc|writ|discuss|help|answer|shar)|fabricat|invent|imagin|simulat|pretend|role)"""

# What a model cannot find out: a refusal only where no answer comes all the same.
LOOK_UP = r"""(?:access|brows|search|check|verif|see\b|view|open|know|determin|predict|find|locat
  |recall|remember|retriev|look|guarantee|say\ (?:for|with|exactly|precisely|that|how)|identif
  |tell\ (?:for|exactly|from|you\ (?:for|exactly|precisely))|estimat|measure|hear|read|watch|feel
  |taste|eat|experience|have|understand|be\ (?:sure|certain)|offer|form|express|hold|make)"""

UNABLE = r"""(?:cannot|could\ not|(?:should|must|may|ought)\ not|will\ not(?:\ be\ able\ to|\ be)?|am\ going\ to\ have\ to
  |(?:am|are)\ (?:\w{2,14}ly\ )?(?:un(?:able|willing)|not\ (?:\w{2,14}ly\ )?(?:able|going|allowed
  |permitted|willing|prepared|authori[sz]ed|equipped|meant|qualified|trained|programmed|designed
  |built|set\ up|configured|supposed|in\ a\ position|at\ liberty|here|the\ right\ \w+|inclined
  |licensed|capable|free|ready|certified))|would\ not\ be\ (?:able|willing))(?:\ to|\ of|\ for)?"""

UNWILLING = r"""(?:would\ (?:rather|sooner)\ not|would\ (?:much\ )?prefer\ not|prefer\ not\ to
  |would\ (?:rather|prefer\ to|like\ to|have\ to)\ (?:avoid|refrain|leave|skip|decline|steer)
  |would\ not\ (?:want|like|feel|be\ comfortable|be\ right|be\ doing)|(?:will|must|shall|have\ to
  |need\ to|am\ going\ to(?:\ have\ to)?|would\ have\ to|am\ obliged\ to|am\ choosing\ to
  |am\ forced\ to|choose\ to|would\ like\ to|regret\ that\ i\ must)\ (?:\w{2,14}ly\ )?(?:decline
  |refuse|refrain|avoid|say\ no\b|pass\b|abstain|sit\ this|stop|pause|not\ (?:provide|answer|give|do|discuss|share)
  |leave\ (?:it|that|this|those|them|the|out)|end\ (?:this|the|our)|draw\ the\ line|opt\ out
  |hold\ back|skip)
  |(?:decline|refuse|refrain)(?:d)?\b(?!\ of)|am\ (?:declining|refusing|refraining|opting\ not)
  |am\ (?:\w{2,14}ly\ )?(?:hesitant|reluctant|wary|loath|not\ (?:\w{2,14}ly\ )?comfortable
  |uncomfortable|not\ keen|not\ happy)\ (?:to|with|about|of|\w+ing)|(?:do|would)\ not\ feel\ (?:
  |\w+ly\ )?(?:comfortable|right|able|qualified|it|that)|(?:choose|have\ chosen|have\ decided
  |am\ choosing|opt|try)\ not\ to|do\ not\ (?:want|wish|intend|plan|care|propose)\ to
  |do\ not\ (?:think|believe|feel)\ (?:that\ )?(?:it|this|that)\ (?:would\ be|is)\ (?:my\ place
  |something\ i|(?:right|appropriate|wise|ethical|responsible|proper|fair)\ (?:for|of)\ (?:me|an\ ai)
  |(?:right|appropriate|ethical|responsible)\ to\ (?:discuss|provid|giv|offer|shar|answer|recommend))
  |(?:do\ not\ (?:think|believe|feel)|am\ not\ (?:confident|convinced|sure|certain))\ (?:that\ )?i
  \ (?:should|can|ought|could|am\ (?:able|allowed|the\ right))|(?:tend|try|have|like|need|want|prefer)\ to\ (?:
  |avoid|steer\ clear|refrain)\ |avoid\ (?:\w+ing|the\ topic|such|this|that)|lack\ the
  |have\ no\ (?:way|means|ability)|do\ not\ have\ (?:the|any)\ (?:ability|capability|capacity|means
  |authority|permission|authori[sz]ation|expertise|qualifications|tools|knowledge|information)
  (?:\ (?:needed|required|necessary|on|about))?\ (?:to|of|for|on|about)
  |(?:am|have\ been)\ (?:\w{2,14}ly\ )?(?:prohibited|forbidden|barred|restricted|prevented|banned
  |instructed|told|programmed|designed|trained)\ (?:from|not\ to|to\ (?:avoid|decline|refuse)))"""

# First person, with what stands between subject and verb; also without subject at the start.
STRONG = re.compile(
    rf"""(?:\bi\ {ADVERB}(?:{UNABLE}|do\ not)\ {ADVERB}(?:to\ )?(?:be\ )?(?:able\ to\ )?{ADVERB}{ACT}
      |\bi\ {ADVERB}{UNWILLING}
      |^(?:(?:no|nope|sorry|apologies|unfortunately|regrettably|afraid|alas|well|hmm|um|oh)[ ,.!:–—-]*
        (?:but\ )?){{0,3}}(?:cannot|will\ not|unable\ to|not\ able\ to|not\ going\ to|no\ can\ do
        |not\ (?:allowed|permitted|comfortable))\ ?{ADVERB}(?:{ACT}|$)
      |\bwe\ (?:cannot|are\ unable\ to|are\ not\ able\ to)\ (?:help\ you|assist|fulfil|comply|process
        |provide\ (?:this|that|you)|answer\ (?:this|that|your))
      |\bno\ can\ do\b)""",
    re.VERBOSE,
)

# The same said without "I": the request, the topic or the rules are in the way.
IMPERSONAL = re.compile(
    rf"""(?:\bit\ (?:is|would\ be|would\ not\ be|is\ not)\ (?:\w{{2,14}}ly\ )?(?:not\ )?
        (?:in|un|ir)?(?:appropriate|ethical|right|responsible|wise|proper|advisable|possible
        |acceptable|wrong)(?:\ (?:or|and|nor)\ \w+)?\ (?:for\ (?:me|an?\ \w+)\ to|of\ me\ to|to
        \ (?:discuss|provide|give|offer|share|answer|write|create|generate|assist|help|promote
        |engage))
      |\b(?:best|better|safer|wiser|preferable)\ (?:that|if)\ i\ (?:do\ not|did\ not|refrain|decline
        |avoid|leave|stop|pass|keep)
      |\bnot\ (?:something|a\ (?:topic|subject|request|question|task|thing)|one|anything|what)
        \ (?:that\ |which\ )?(?:i|we)\ (?:can|am|will|would|could|feel|do|want|have)
      |\b(?:falls|fall|is|are|lies|goes|go|being)\ (?:\w{{2,14}}ly\ )?(?:outside|beyond|out)\ (?:of\ )?
        (?:what\ i|my|the\ scope\ of\ (?:my|what))
      |\b(?:go|goes|going|is|are|be|runs)\ (?:\w{{2,14}}ly\ )?(?:against|contrary\ to|in\ conflict\ with)
        \ (?:my|our|the\ (?:rules|guidelines|policy|policies|terms))
      |\b(?:violat\w+|breach\w*|conflict\w*\ with|contraven\w+|against)\ (?:of\ )?(?:my|our|openai|
        |the\ (?:content|usage|safety))\ ?\w*\ ?(?:polic|guideline|principle|value|rule|program|terms)
      |\b(?:my|our|safety|content|company)\ (?:\w+\ )?(?:guidelines|programming|polic(?:y|ies)|rules
        |training|principles|instructions|design|safeguards|restrictions|values|ethics|creators
        |developers|settings|limitations)\ (?:\w+\ )?(?:prevent|prohibit|forbid|do\ not|does\ not
        |stop|bar|restrict|keep|mean|preclude|require|limit)
      |\b(?:this|that|your|the|such\ an?)\ (?:\w+\ )?(?:request|question|query|topic|content|response
        |prompt|message|reply|answer|output|conversation|information|subject)\ (?:\w+\ )?(?:
        cannot\ be|could\ not\ be|will\ not\ be|is\ (?:not\ (?:allowed|permitted|something|one
        |appropriate|available|supported)|off[\ -]limits|inappropriate|prohibited|denied|blocked
        |restricted|declined|against|refused)|has\ been\ (?:stopped|blocked|removed|filtered|denied
        |withheld|flagged|declined|redacted|refused|cut|ended|terminated|halted)|was\ (?:stopped|blocked
        |removed|filtered|flagged|declined|withheld|cut|halted)|violates|may\ violate|might\ violate
        |goes\ against|falls\ outside)
      |^(?:request|access|answer|response|content|message|reply|output)\ (?:\w+\ )?(?:denied|refused
        |declined|blocked|filtered|withheld|removed|redacted)
      |\b(?:that|this|it)\ is\ (?:\w{{2,14}}ly\ )?(?:off[\ -]limits|beyond\ (?:me|my)|above\ my|where\ i
        \ (?:draw|must|have)|information\ (?:that\ )?i)
      |\bi\ am\ (?:sorry|afraid),?\ (?:but\ )?(?:that|this)\ is\ (?:not\ (?:something|possible|one)|beyond
        |outside)
      |\bi\ will\ (?:have\ to\ )?leave\ (?:it|that|this|those|them|the\ \w+)\ (?:out|to|for|there|at)
      |\bi\ am\ going\ to\ (?:pass|leave|skip|stop|decline|refrain)
      |\boff[\ -]limits\ (?:for|to)\ me\b|\bi\ (?:can\ only|am\ only\ able\ to|only)\ (?:answer|help|assist
        |discuss|respond)\b|\bso\ i\ (?:will\ not|cannot|must\ not|would\ rather\ not|am\ not\ going\ to)\W*$
      |\bi\ am\ not\ an?\ (?:\w+\ ){{0,3}}(?:capable\ of|able\ to|who\ can|that\ can|qualified\ to)
      |\b(?:let\ us|i\ would\ like\ to)\ not\ (?:go|discuss|talk|get)
      |\b(?:polic(?:y|ies)|guidelines|rules|ethics|restrictions)\ (?:\w+\ )?prevent(?:s)?\ me\b)""",
    re.VERBOSE,
)

# The words with which an answer that has begun is broken off.
BROKEN_OFF = re.compile(
    rf"""(?:\bi\ {ADVERB}(?:{UNABLE})\ {ADVERB}(?:continu|proceed|go\ (?:on|further|any)|complet
        |finish|nam(?:e|ing)\b|carry\ on|say\ (?:more|any)|do\ (?:that|this|it))
      |\b(?:need|have|going|must|should|better|got|let\ me)\ (?:to\ )?(?:have\ to\ )?stop\b
      |\b(?:stop|end|pause|leave\ it)\ (?:right\ )?(?:here|there)\b
      |\b(?:response|message|reply|answer|output|content|conversation)\ (?:has\ been|was|is)\ (?:being\ )?
        (?:stopped|removed|blocked|filtered|cut|withheld|redacted|flagged|halted|ended|terminated)
      |\b(?:realise|realize|noticed?|see\ now|on\ reflection|on\ second\ thought|thinking\ about\ it
        |having\ thought|come\ to\ think|actually|wait)\b)""",
    re.VERBOSE,
)

# Not knowing, having no view, no access: counts where nothing else is said.
WEAK = re.compile(
    rf"""(?:\bi\ {ADVERB}{UNABLE}\ {ADVERB}(?:to\ )?{LOOK_UP}
      |\bi\ {ADVERB}(?:do\ not|lack|have\ no)\ {ADVERB}(?:have\ |possess\ |hold\ |form\ )?
        (?:(?:an?|any|the|my|enough|sufficient|personal|real-time|live|specific|current|direct|own|up-to-date
        |reliable|such|that|detailed|or|and)\ ){{0,4}}(?:opinion|preference|feeling|access|information
        |data|knowledge|experience|detail|answer|belief|emotion|favou?rite|idea|clue|context|record|view
        |abilit|memory|body|capabilit|taste|expertise|sense|insight|familiar|means|way\b)
      |(?:^|[,;]\ |\bi\ )(?:do\ not|did\ not|cannot|could\ not)\ (?:\w{{2,14}}ly\ )?(?:know|understand|recogni[sz]e|follow
        |get\ (?:that|what|your))\b
      |\b(?:i\ am\ )?(?:\w{{2,14}}ly\ )?not\ (?:\w{{2,14}}ly\ )?(?:sure|certain|familiar|aware|clear)\b
      |\bi\ am\ (?:unsure|uncertain|at\ a\ loss|stumped|unaware|unfamiliar|clueless)\b
      |\b(?:no\ (?:idea|clue)|beats\ me|who\ knows|your\ guess\ is|hard\ to\ say|no\ one\ can\ say
        |i\ (?:have\ )?(?:forget|forgot|never\ heard)|dunno|i\ wish\ i\ (?:knew|could)|i\ could\ not\ say)\b
      |\bi\ am\ (?:just|only|merely|simply)?\ ?an?\ (?:\w+\ ){{0,3}}(?:ai|model|assistant|program|bot|chatbot
        |machine|computer|intelligence)\b
      |\b(?:knowledge|training)\ (?:cut-?off|data)\b)""",
    re.VERBOSE,
)

# "I cannot give an exact figure, but about 50": an inability that bounds an answer.
SCOPED = re.compile(
    r"""\b(?:cannot|not\ able\ to|unable\ to|do\ not|could\ not|would\ not)\ (?:\w+\ ){1,4}?(?:an?\ |any\ |the\ )?
      (?:exact|precise|definitive|certain|definite|complete|full|single|specific|personali[sz]ed|medical
      |legal|financial|tax|professional|official|live|real-time|current|up-to-date|historical|guarantee)\b""",
    re.VERBOSE,
)

# Wordings that look like a refusal and are none.
NOT_A_REFUSAL = re.compile(
    r"""\bhelp\ but\b|\bhelp\ (?:it|myself|laughing|feeling)\b|\benough\b|\bcannot\ tell\ (?:you\ how\ (?:much|many|happy|glad|often|good
        |proud)|them|the\ difference)
      |\b(?:cannot|do\ not|could\ not|would\ not)\ (?:\w+ly\ )?(?:recommend|advise|suggest|encourage|endorse)
        \ (?:it|them|this|that|using|doing|going|mixing|buying|trying|leaving|putting|eating|more|\w+ing)\b
      |\bdo\ not\ (?:recommend|advise|suggest|encourage|do\ it|say\b|tell\ (?:him|her|them|any))
      |\bcannot\ (?:do|make|help|give|process)\ (?:it|that|this)\ (?:without|unless|until|alone)\b""",
    re.VERBOSE,
)
