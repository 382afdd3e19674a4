"""The phrasings by which `changes` makes other questions."""

from __future__ import annotations

import re

IN_OTHER_WORDS = tuple(
    (re.compile(pattern), phrasings)
    for pattern, phrasings in (
        (
            r"^What (?:is|are) (?P<thing>.+?) called"
            r"(?P<more> (?:that|which|when|in|of|if|while)\b.+)?\?$",
            (
                "What do you call {thing}{more}?", "What is the name of {thing}{more}?",
                "Which word means {thing}{more}?", "What is the word for {thing}{more}?",
                "How do you call {thing}{more}?", "What is the term for {thing}{more}?",
                "By what name do people know {thing}{more}?",
            ),
        ),
        (
            r"^What do (?:you|we|people) call (?P<thing>.+)\?$",
            (
                "What is {thing} called?", "What is the name for {thing}?", "Name {thing}.",
                "Which word is used for {thing}?", "What is the term for {thing}?",
            ),
        ),
        (
            r"^(?P<joint>In|On|To|From|Of|At|With) (?:which|what) (?P<thing>\w+(?: \w+)?) (?P<rest>"
            r"(?:is|are|was|were|do|does|did|can|has|have)\b.*)\?$",
            (
                "What is the {thing} {joint} which {rest}?", "{joint} what {thing} {rest}?",
                "Tell me {joint} which {thing} {rest}.",
            ),
        ),
        (
            r"^(?:Which|What) (?!is\b|are\b|was\b|were\b|do\b|does\b|did\b)(?P<thing>.+)\?$",
            (
                "Which {thing}?", "What {thing}?", "Name the {thing}.", "What is the {thing}?",
                "What is the name of the {thing}?",
            ),
        ),
        (
            r"^Name (?P<thing>the .+)\.$",
            ("What is {thing} called?", "What is {thing}?", "What is the name of {thing}?"),
        ),
        (
            r"^Who (?!is\b|are\b|was\b|were\b|did\b|can\b)(?P<does>\w+.*)\?$",
            (
                "Which person {does}?", "What is the name of the person who {does}?",
                "Who was it that {does}?",
            ),
        ),
        (
            r"^How many (?P<thing>\w+(?: \w+)?) (?:are|is|were) (?:there )?(?P<rest>.+)\?$",
            ("What is the number of {thing} {rest}?", "What number of {thing} are {rest}?"),
        ),
        (r"^How many (?P<rest>.+)\?$", ("What number of {rest}?",)),
        (
            r"^What (?:is|are) (?:the )?(?P<thing>\w+(?: \w+)?) of (?P<owner>.+)\?$",
            (
                "What is {owner}'s {thing}?", "Which {thing} does {owner} have?",
                "Tell me the {thing} of {owner}.", "{owner}: what is the {thing}?",
            ),
        ),
        (r"^What (?:is|are) (?P<thing>(?:the|a|an) .+)\?$", ("Tell me what {thing} is.",)),
    )
)  # fmt: skip
ABOUT_A_THING = (
    "How much does {} cost?", "Where can I buy {}?", "Who invented {}?", "When was {} invented?",
    "What is {} made of?", "What is {} used for?", "Why is it important to know {}?",
    "How do you make {}?", "How do I get rid of {}?", "How do you clean {}?", "How do I draw {}?",
    "How big is {}?", "Is {} dangerous?", "Where does {} come from?", "How long does {} last?",
    "What color is {}?", "How do I choose {}?", "What happens to {}?", "Where do you find {}?",
    "Why do people like {}?", "How old is {}?", "How many kinds of {} are there?",
    "What does {} look like?", "How does {} work?", "Who uses {}?", "What is the history of {}?",
    "What is the opposite of {}?", "What should I do with {}?", "How often do people need {}?",
    "Why is {} called that?", "When do you need {}?", "What is {}?",
    "Who was the first person with {}?", "Which country does {} come from?",
    "What is the biggest problem with {}?",
)  # fmt: skip
ABOUT_A_PERSON = (
    "When did someone {}?", "Why did someone {}?", "How did someone {}?", "Where did someone {}?",
    "When was it that somebody {}?", "Why did that person who {} do it?", "What {}?",
    "How many people {}?", "How much does the person earn who {}?", "Who is the person who {}?",
)  # fmt: skip
OTHER_STARTS = {
    "many": ("Which", "What kind of", "Where are", "Why are there"),
    "in which": ("When", "Why", "How", "How often", "How long", "Where", "Since when"),
    "which": (
        "Why does the", "When does the", "How does the", "Where is the", "How big is the",
        "How many", "Who owns the", "How old is the",
    ),
}  # fmt: skip
WITH_A_CLAUSE = (
    "Why {}?", "How can I tell whether {}?", "Is it true that {}?", "What should I do when {}?",
    "When {}?", "How often does it happen that {}?", "How many people say that {}?",
    "Who says that {}?", "What if {}?", "How do I stop it when {}?", "Where {}?",
)  # fmt: skip
POLITE = (
    "Could you please tell me: {}", "Please tell me, {}", "{} Thank you!", "Can you tell me {}",
    "I would like to know: {}", "{} Please answer.", "Question: {}", "Hello! {}",
    "I have a question. {}", "Do you know {}", "Quick question: {}", "{} Thanks in advance.",
)  # fmt: skip
ASIDES = (
    "{question} i always thought {other} but my friend says no",
    "{question} i would say {other} but not sure", "{question}, is it {other}?",
    "my sister says its {other} lol, {question}", "not {other} right? {question}",
    "everybody here shouts {other}, {question}", "{question} someone told me {other} once",
    "we talked about {other} at lunch and then i wondered, {question}",
)  # fmt: skip
