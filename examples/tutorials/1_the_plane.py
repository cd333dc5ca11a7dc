"""
The signed distance
===================

Text.
"""

print("hello")
