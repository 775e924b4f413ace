# SPDX-License-Identifier: MIT
"""A sign-up page whose mails, pictures and nightly report are made in the background."""
