"""A rewrite that asks the same is free, and one that asks something else costs."""

from __future__ import annotations

from query_mutator.models.encoders import Encoder
from query_mutator.objectives import Batch, Weights
from query_mutator.objectives.base import Term
from query_mutator.objectives.drift import drift_terms

SYDNEY = "whats teh capital of austrailia i always thougt sydney but my friend says no"
BERLIN = "berlin wall fall year"
EGG = "egg hard boil how long"
STORY = (
    "so we missed the ferry and my phone was wet and grandma laughed at us, anyway how many "
    "minutes are in two hours"
)
FREE = [
    (SYDNEY, "What is the capital of Australia?"),
    (SYDNEY, "Which city is the capital of Australia?"),
    (BERLIN, "In which year did the Berlin Wall fall?"),
    (BERLIN, "When did the Berlin Wall fall?"),
    (EGG, "How long does it take to hard-boil an egg?"),
    (EGG, "How long do I have to boil an egg until it is hard?"),
    (STORY, "How many minutes are in two hours?"),
    (STORY, "How many minutes are there in 2 hours?"),
    ("How tall is Mount Fuji?", "Could you please tell me how tall Mount Fuji is?"),
    ("How tall is Mount Fuji?", "What is the height of Mount Fuji?"),
    ("wich animel has the longst nek", "Which animal has the longest neck?"),
    ("hoo rote hamlit", "Who wrote Hamlet?"),
    ("ok hi there, um, so like what do bees drink, thanks", "What do bees drink?"),
    ("HELP!!! my sink is DROWNING me, which tool opens a blocked drain???",
     "Which tool opens a blocked drain?"),
    ("my brain is dying, what is nine times six", "What is 9 times 6?"),
    ("What is nine times six?", "What is 9 × 6?"),
    ("plural of sheep?", "What is the plural of sheep?"),
    ("opposite of hot", "What is the opposite of hot?"),
    ("What do you call a female lion?", "What is a female lion called?"),
    ("What do you call a female lion?", "What is the name for a female lion?"),
    ("Name the longest river in Africa.", "What is the longest river in Africa?"),
    ("How many players are in a soccer team?", "What is the number of players in a soccer team?"),
    ("Who was the first president of the United States?",
     "Which person was the first president of the United States?"),
    ("In which country is the city of Kyoto?", "Which country is the city of Kyoto in?"),
    ("Where is the Colosseum?", "Where can the Colosseum be found?"),
    ("Why do leaves turn yellow in autumn?", "Why do the leaves become yellow in the fall?"),
    ("How do I unclog a toilet without a plunger?", "How can I unclog a toilet without a plunger?"),
    ("Please to say, the bird which is sleeping in the day and hunts in the night?",
     "Which bird sleeps during the day and hunts at night?"),
    ("Is a tomato a fruit?", "is a tomato a fruit"),
    ("how much is 20 percent of 50", "What is 20 percent of 50?"),
    ("We rented a boat, it had a hole, we laughed a lot. What do you call the front of a boat?",
     "What is the front of a boat called?"),
    ("What is the capital of Peru?", "what's the capital of peru"),
    ("which planet is the red one??", "Which planet is called the red planet?"),
    ("train leaves 8:15 takes 50 min arrives when", "When does a train arrive that leaves at 8:15 "
     "and takes 50 minutes?"),
]  # fmt: skip
COSTS = [
    (SYDNEY, "What is the capital of Sydney?"),
    (SYDNEY, "What is the capital of Austria?"),
    (SYDNEY, "Why does my friend say no?"),
    (BERLIN, "What is the opposite of Berlin Wall?"),
    (BERLIN, "What is the Berlin Wall?"),
    (BERLIN, "In which year was the Berlin Wall built?"),
    (EGG, "What is an egg hard boil?"),
    (EGG, "How do you peel a hard-boiled egg?"),
    (STORY, "How many minutes are in three hours?"),
    (STORY, "How do I dry a wet phone?"),
    (STORY, "How many seconds are in two hours?"),
    ("How tall is Mount Fuji?", "How tall is Mount Everest?"),
    ("How tall is Mount Fuji?", "How old is Mount Fuji?"),
    ("How tall is Mount Fuji?", "Where is Mount Fuji?"),
    ("How tall is Mount Fuji?", "Mount Fuji is 3,776 meters tall."),
    ("wich animel has the longst nek", "Which animal has the shortest neck?"),
    ("wich animel has the longst nek", "How long is the neck of a giraffe?"),
    ("hoo rote hamlit", "Who wrote Macbeth?"),
    ("hoo rote hamlit", "When was Hamlet written?"),
    ("What is nine times six?", "What is nine times seven?"),
    ("What is nine times six?", "What is nine plus six?"),
    ("What is 12 minus 5?", "What is 5 minus 12?"),
    ("plural of sheep?", "What is the plural of goose?"),
    ("What do you call a female lion?", "What do you call a male lion?"),
    ("What do you call a female lion?", "What does a female lion eat?"),
    ("Name the longest river in Africa.", "Name the longest river in Asia."),
    ("Name the longest river in Africa.", "Name the second longest river in Africa."),
    ("Name the longest river in Africa.", "How long is the longest river in Africa?"),
    ("Name the longest river in Africa.", "What is the longest river?"),
    ("How many players are in a soccer team?", "How many players are in two soccer teams?"),
    ("How many players are in a soccer team?", "How many players are in a rugby team?"),
    ("Who was the first president of the United States?",
     "Who was the last president of the United States?"),
    ("Who was the first president of the United States?",
     "When was the first president of the United States elected?"),
    ("Which is heavier, iron or gold?", "Which is lighter, iron or gold?"),
    ("Why do leaves turn yellow in autumn?", "Why do leaves fall in autumn?"),
    ("Why do leaves turn yellow in autumn?", "When do leaves turn yellow?"),
    ("How do I unclog a toilet without a plunger?", "How do I unclog a toilet with a plunger?"),
    ("Which birds can fly?", "Which birds cannot fly?"),
    ("What comes before Tuesday?", "What comes after Tuesday?"),
    ("Which metal does not rust?", "Which metal does rust?"),
    ("Is a tomato a fruit?", "Is a tomato healthy?"),
    ("how much is 20 percent of 50", "What is 50 percent of 200?"),
    ("What is the capital of Peru?", "How do whales sleep?"),
    ("What is the capital of Peru?", "What is the currency of Peru?"),
    ("Which gas turns into a liquid here?", "Which liquid turns into a gas here?"),
    ("What is the first letter of the alphabet?", "What is the last letter of the alphabet?"),
]  # fmt: skip


def drifts(encoder: Encoder, pairs: list[tuple[str, str]], **weights: float) -> list[Term]:
    questions, rewrites = ([pair[side] for pair in pairs] for side in (0, 1))
    empty = [""] * len(pairs)
    batch = Batch(questions, rewrites, empty, empty, [()] * len(pairs), encoder.encode)
    return drift_terms(batch, Weights(**weights))
