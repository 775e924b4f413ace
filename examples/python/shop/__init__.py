# SPDX-License-Identifier: MIT
"""A shop that sends invoices and makes thumbnails in the background."""
