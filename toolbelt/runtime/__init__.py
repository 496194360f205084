"""Agents' requests for surfaces, and their calls. Requests never write configuration, and rows never leave this
package.
"""
