"""Every operator on every question, each answer kept: a table that learners are developed on."""
